"""What a review is told beside the files: machine, GPUs, model, drafter, engine version, dialect."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from planner._record import record
from planner.data import load_drafter, load_hardware, load_model, packaged_ids
from planner.data.files import read_text
from planner.domain import DrafterProfile, HardwareProfile, ModelProfile
from planner.engine.dialects import get_dialect
from planner.errors import InputError, Problem
from planner.rules.models import ModelFacts, facts_of_name, facts_of_profile
from planner.rules.versions import UNSTATED, VersionSpan, span_of

__all__ = ["Subject", "load_subject", "profile_for_path"]


@record()
class Subject:
    """Options of a review, loaded."""

    hardware: HardwareProfile | None = None
    n_gpus: int | None = None
    model: ModelProfile | None = None
    facts: ModelFacts | None = None
    model_name: str | None = None
    drafter: DrafterProfile | None = None
    version: VersionSpan = UNSTATED
    dialect: str | None = None
    notes: tuple[str, ...] = ()


def load_subject(
    *,
    hw: str | Path | HardwareProfile | None = None,
    gpus: int | None = None,
    model: str | Path | ModelProfile | None = None,
    drafter: str | Path | DrafterProfile | None = None,
    engine_version: str | None = None,
    dialect: str | None = None,
) -> Subject:
    """Loads what the options name.

    A model that is no profile is looked up by name among the public facts of the rules; an unknown name is kept as a
    name, and rules about models are silent.

    Raises:
        InputError: every option that names nothing.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    hardware = None
    if hw is not None:
        try:
            hardware = load_hardware(hw)
        except InputError as error:
            problems.extend(error.problems)
    if gpus is not None and (isinstance(gpus, bool) or gpus < 1):
        problems.append(Problem("must be at least 1", field="--gpus", value=gpus))
    profile, facts, name = None, None, None
    if model is not None:
        try:
            profile, facts, name = _model(model)
        except InputError as error:
            problems.extend(error.problems)
        if profile is None and facts is None and name is not None:
            notes.append(f"model {name!r} is not known: rules about models look at the launch only")
    draft = None
    if drafter is not None and str(drafter) != "none":
        try:
            draft = load_drafter(drafter)
        except InputError as error:
            problems.extend(error.problems)
    span = span_of(engine_version)
    if engine_version is not None and not span.stated:
        notes.append(f"engine version {engine_version!r} names no release: findings that depend on the version soften")
    if dialect is not None:
        try:
            get_dialect(dialect)
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return Subject(hardware, gpus, profile, facts, name, draft, span, dialect, tuple(notes))


def _model(model: str | Path | ModelProfile) -> tuple[ModelProfile | None, ModelFacts | None, str]:
    if isinstance(model, ModelProfile):
        return model, facts_of_profile(model), model.id
    name = str(model)
    try:
        profile = load_model(model)
    except InputError:
        if Path(name).exists():
            raise
        return None, facts_of_name(name), name
    return profile, facts_of_profile(profile), name


@cache
def _packaged_models(ids: tuple[str, ...]) -> dict[str, ModelProfile]:
    profiles = [load_model(name) for name in ids]
    return {key.lower(): profile for profile in profiles for key in (profile.id, profile.model_path, *profile.aliases)}


def profile_for_path(path: str) -> ModelProfile | None:
    """The packaged profile of a ``--model-path``; no file outside the package is looked at."""
    whole = path.strip().rstrip("/").lower()
    last = whole.rsplit("/", 1)[-1]
    # A profile whose file does not hold the name as a string need not be built.
    names = (f'"{whole}"', f'"{last}"')
    known = _packaged_models(tuple(id_ for id_, text in _packaged_texts() if any(name in text for name in names)))
    return known.get(whole) or known.get(last)


@cache
def _packaged_texts() -> tuple[tuple[str, str], ...]:
    return tuple((name, read_text(f"models/{name}.toml").lower()) for name in packaged_ids("model"))
