"""From a parsed launch and the options of the review to what the rules look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.domain import LaunchConfig
from planner.engine.version import EngineVersion, parse_engine_version
from planner.errors import InputError
from planner.parse import Form, ParsedLaunch, Token
from planner.review.reading import Reading, read_launch
from planner.review.subject import Subject, profile_for_path
from planner.rules.base import Place
from planner.rules.context import Container, EnvVar, RuleContext, WritingFault
from planner.rules.models import facts_of_name, facts_of_profile
from planner.rules.versions import VersionSpan, span_of

if TYPE_CHECKING:
    from planner.engine.resolution import Resolution

__all__ = ["build_contexts", "engine_version_of"]


LARGEST = 1_000_000
"""Largest batch or chunk that the engine's picture is asked about: it lists every size up to it."""
_LISTED = ("chunked_prefill_size", "cuda_graph_max_bs_decode", "cuda_graph_max_bs_prefill")


def build_contexts(launches: Sequence[ParsedLaunch], subject: Subject) -> tuple[RuleContext, ...]:
    """One context for each launch of a file; each knows its siblings."""
    alone = [_context(launch, subject) for launch in launches]
    family = tuple(alone)
    return tuple(replace(one, siblings=family) for one in alone)


def engine_version_of(span: VersionSpan) -> EngineVersion:
    """The engine's picture that stands for a span: of its newest release.

    Defaults are those of the version whose rules resolve it: rules written for one version read its fields.
    """
    try:
        version = parse_engine_version(span.nearest)
    except InputError:
        version = parse_engine_version(None)
    return version.replace(table=version.rules)


def _context(launch: ParsedLaunch, subject: Subject) -> RuleContext:
    span = _span(launch, subject)
    reading = read_launch(launch, span=span, dialect=subject.dialect)
    env = {
        setting.name: EnvVar(
            setting.name, setting.value.text, setting.exported, _place(setting.name_token or setting.value)
        )
        for setting in launch.env
    }
    exported = tuple((name, one.value) for name, one in env.items() if one.exported and one.value is not None)
    config = reading.read.launch.replace(env=exported)
    base = RuleContext(
        launch=config,
        hardware=subject.hardware,
        n_gpus=subject.n_gpus or (launch.job.gpus_per_node if launch.job is not None else None),
        drafter=subject.drafter,
        version=span,
        dialect=subject.dialect,
        flags=reading.flags,
        faults=reading.faults,
        env=env,
        writing=_writing(launch),
        container=_container(launch),
        role=launch.role.value if launch.role is not None else None,
        form=launch.form.value,
        launcher=launch.launcher.value,
        open_ended=reading.open_ended,
        tables=reading.tables,
    )
    return _with_resolution(_with_model(base, config, subject), subject)


def _span(launch: ParsedLaunch, subject: Subject) -> VersionSpan:
    """The version stated, else the tag of the image."""
    if subject.version.stated or subject.version.asked is not None:
        return subject.version
    image = launch.image
    return span_of(image.text) if image is not None and image.text is not None else subject.version


def _with_model(context: RuleContext, config: LaunchConfig, subject: Subject) -> RuleContext:
    """Model and facts: the launch's own path where it is known by name, else the model stated."""
    path = config.model_path
    named = facts_of_name(path) if path else None
    if subject.model is not None:
        facts = facts_of_profile(subject.model)
        if path is not None:
            facts = replace(facts, name=path)
        if named is not None and named.form is not facts.form and context.named_form is not None:
            facts = replace(facts, weight_bytes=None, form=named.form, params_b=named.params_b, nextn=named.nextn)
        return replace(context, model=subject.model, facts=facts)
    profile = profile_for_path(path) if path else None
    if profile is not None:
        return replace(context, model=profile, facts=replace(facts_of_profile(profile), name=path or profile.id))
    if named is not None:
        stated = subject.facts
        if stated is not None and stated.id == named.id and path is not None and "/" not in path:
            return replace(context, facts=replace(stated, name=stated.name))
        return replace(context, facts=named)
    return replace(context, facts=subject.facts)


def _with_resolution(context: RuleContext, subject: Subject) -> RuleContext:
    if subject.hardware is None or context.diffusion:
        return context
    return replace(context, resolution=_resolve(context))


def _resolve(context: RuleContext) -> Resolution | None:
    """The engine's picture of the launch. Arguments that could not be read keep the engine's default, so values that
    hang on them are not taken from it (see :meth:`RuleContext.effective`)."""
    if context.hardware is None or any((context.number(name) or 0) > LARGEST for name in _LISTED):
        return None
    from planner.engine.resolution import resolve

    version = engine_version_of(context.version)
    launch = context.launch
    if launch.model_path is None:
        launch = launch.replace(model_path=context.facts.name if context.facts is not None else "model")
    try:
        return resolve(
            launch,
            hardware=context.hardware,
            model=context.model,
            drafter=context.drafter,
            engine_version=version,
            dialect=context.dialect,
        )
    except InputError:
        return None


def _writing(launch: ParsedLaunch) -> tuple[WritingFault, ...]:
    lost = tuple(token.raw for token in launch.lost)
    faults = []
    for note in launch.notes:
        takes = "backslash" in note.kind.value or "continuation" in note.kind.value
        faults.append(WritingFault(note.kind.value, note.message, Place(note.line, note.column), lost if takes else ()))
    return tuple(faults)


def _container(launch: ParsedLaunch) -> Container | None:
    facts = launch.container
    image = facts.image if facts is not None and facts.image is not None else launch.image
    text = None if image is None else (image.text if image.text is not None else image.raw)
    if facts is None:
        if launch.form is Form.DOCKERFILE or (text is not None and launch.form in (Form.COMPOSE, Form.KUBERNETES)):
            return Container(kind=launch.form.value, image=text)
        return None
    return Container(
        kind="docker" if launch.form in (Form.SHELL, Form.SYSTEMD, Form.ARGV) else launch.form.value,
        image=text,
        n_gpus=facts.n_gpus,
        shm_bytes=facts.shm_bytes,
        shm_mounted=facts.shm_mounted,
        ipc_host=facts.ipc_host,
    )


def _place(token: Token) -> Place:
    return Place(token.line, token.column)


def reading_of(launch: ParsedLaunch, subject: Subject) -> Reading:
    """The words of a launch as the review reads them."""
    return read_launch(launch, span=_span(launch, subject), dialect=subject.dialect)
