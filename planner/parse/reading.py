"""From text to a :class:`planner.parse.model.ParsedFile`. This module holds the way in: :func:`parse_text`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from planner.errors import InputError, Problem, nearest_hint
from planner.parse.detect import ALIASES, form_named, form_of, is_template
from planner.parse.forms import read_form
from planner.parse.model import (
    ContainerFacts,
    EnvSetting,
    Flag,
    Form,
    Launcher,
    Note,
    ParsedFile,
    ParsedLaunch,
    Role,
    Token,
)
from planner.parse.setting import Collector, Draft, EnvItem, Setting, role_of
from planner.parse.source import Document, Mapped
from planner.parse.suppressions import named_images, suppressions

__all__ = ["LARGEST_BYTES", "parse_argv", "parse_text"]

LARGEST_BYTES = 10 * 1024 * 1024
"""A launch file is read up to this size."""
_ROLE_MODES = {"prefill": Role.PREFILL, "decode": Role.DECODE}


def parse_text(text: str, *, name: str, form: str | None = None) -> ParsedFile:
    """Reads the launches of a text.

    Args:
        text: the content of a file.
        name: its name, which tells the form and stands in problems.
        form: one of ``planner.parse.detect.ALIASES``; None: told from name and content.

    Returns:
        Launches with places, and every reason why a part could not be read. It never raises for what the text holds.

    Raises:
        InputError: there is no such ``form``.
    """
    chosen = None
    if form is not None:
        chosen = form_named(form)
        if chosen is None:
            raise InputError(
                [Problem("no such form", field="form", value=form, hint=nearest_hint(form, sorted(ALIASES)))]
            )
    if len(text) > LARGEST_BYTES or (
        len(text) > LARGEST_BYTES // 4 and len(text.encode("utf-8", "replace")) > LARGEST_BYTES
    ):
        problem = Problem(f"larger than {LARGEST_BYTES // 1024**2} MiB; not read", file=name, line=1)
        return ParsedFile(name, "", chosen, problems=(problem,))
    at = text.find("\0")
    if at >= 0:
        problem = Problem("not a text file", file=name, line=text.count("\n", 0, at) + 1)
        return ParsedFile(name, "", chosen, problems=(problem,))
    document = Document(name, text)
    chosen = chosen or form_of(name, text)
    if chosen is None:
        return ParsedFile(name, text, None, problems=(Problem("the file is empty", file=name, line=1),))
    from planner.parse.shell_entry import run_script

    out = Collector(document, run_script)
    try:
        read_form(chosen, _decoded(text), Setting(form=chosen), out)
    except RecursionError:
        out.problem("nested too deeply to be read", None)
    return _finish(document, chosen, out)


def parse_argv(tokens: Sequence[str], *, name: str = "<argv>") -> ParsedFile:
    """Reads a command that is already split into words, or only the flags of one. Places count in the joined line."""
    parts: list[str] = [shlex.quote(token) for token in tokens]
    text = " ".join(parts)
    parsed = parse_text(text, name=name, form="argv")
    if parsed.launches or not parts:
        return parsed
    return parsed


def _decoded(text: str) -> Mapped:
    """The text without a byte order mark and without carriage returns before line ends."""
    start = 1 if text.startswith("\ufeff") else 0
    if "\r" not in text:
        return Mapped.of(text[start:], start)
    kept = [
        index for index in range(start, len(text)) if not (text[index] == "\r" and text[index + 1 : index + 2] == "\n")
    ]
    return Mapped("".join(text[index] for index in kept), kept, [index + 1 for index in kept])


def _finish(document: Document, form: Form, out: Collector) -> ParsedFile:
    images = named_images(document)
    groups: dict[object, int] = {}
    launches = []
    for draft in _distinct(out.drafts):
        key = draft.site if draft.site is not None else id(draft)
        launches.append(_launch(document, draft, groups.setdefault(key, len(groups)), images))
    problems = list(out.problems)
    if not problems and not any(launch.launcher is not Launcher.ROUTER for launch in launches):
        reason = "no SGLang launch found"
        if is_template(document.text) and form in (Form.KUBERNETES, Form.RECIPE, Form.COMPOSE):
            reason = "a Helm template; no launch found in it"
        problems.append(Problem(reason, file=document.name, line=1))
    return ParsedFile(
        document.name, document.text, form, tuple(launches), tuple(problems), suppressions(document), images
    )  # fmt: skip


def _distinct(drafts: Sequence[Draft]) -> list[Draft]:
    """One draft for equal words of one command; conditions that made no difference are dropped."""
    kept: list[Draft] = []
    by_key: dict[tuple[object, ...], Draft] = {}
    for draft in drafts:
        key = (draft.site if draft.site is not None else id(draft), draft.start, draft.key())
        before = by_key.get(key)
        if before is None:
            by_key[key] = draft
            kept.append(draft)
            continue
        common = tuple(text for text in before.setting.condition if text in draft.setting.condition)
        before.setting = replace(before.setting, condition=common)
    return kept


def _launch(document: Document, draft: Draft, group: int, images: Sequence[Token]) -> ParsedLaunch:
    setting = draft.setting
    argv = tuple(document.token(word) for word in draft.argv)
    container = _container(document, setting.container)
    image = container.image if container is not None and container.image is not None else None
    if image is None and len(images) == 1:
        image = images[0]
    off = tuple(
        Flag(flag.name.shown, document.token(flag.name), (), joined=False) for flag in draft.switched_off
    )  # fmt: skip
    notes = tuple(Note(note.kind, note.message, *document.place(note.start)) for note in draft.notes)
    launch = ParsedLaunch(
        launcher=draft.launcher,
        argv=argv,
        env=tuple(_env(document, item) for item in setting.env if not item.name.startswith("volume:")),
        container=container,
        role=setting.role,
        condition=" and ".join(setting.condition) or None,
        span=document.span(*_bounds(draft)),
        form=setting.form,
        name=setting.name,
        program=tuple(document.token(word) for word in draft.program),
        keyed=draft.keyed,
        switched_off=off,
        lost=tuple(document.token(word) for word in draft.lost),
        notes=notes,
        job=setting.job,
        image=image,
        group=group,
    )
    return replace(launch, role=_role(launch, document.name))


def _bounds(draft: Draft) -> tuple[int, int]:
    start, end = draft.start, draft.end
    if start >= end:
        words = [*draft.program, *draft.argv]
        start = min((word.start for word in words), default=start)
        end = max((word.end for word in words), default=end)
    return start, max(start, end)


def _role(launch: ParsedLaunch, file: str) -> Role | None:
    if launch.launcher is Launcher.ROUTER:
        return Role.ROUTER
    mode = launch.flag("--disaggregation-mode")
    if mode is not None and mode.value in _ROLE_MODES:
        return _ROLE_MODES[mode.value]
    return launch.role or role_of(file.rsplit("/", 1)[-1].rsplit(".", 1)[0])


def _container(document: Document, facts: ContainerFacts | None) -> ContainerFacts | None:
    if facts is None or facts.image is None:
        return facts
    image = facts.image
    placed = document.whole(image.text or "", image.start, image.end, image.layers)
    return replace(facts, image=replace(placed, text=image.text, known=image.known, by_default=image.by_default))


def _env(document: Document, item: EnvItem) -> EnvSetting:
    name_token = document.whole(item.name, *item.name_at) if item.name_at is not None else None
    return EnvSetting(item.name, document.token(item.value), item.exported, item.how, name_token)
