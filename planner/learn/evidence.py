"""Observations and field notes as runs that limits are learned from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.data.field_notes import FieldRun
from planner.domain import Candidate, HardwareProfile, ModelProfile, Observation
from planner.engine.argv import read_argv
from planner.engine.dialects import get_dialect
from planner.engine.resolution import resolve
from planner.engine.version import parse_engine_version
from planner.errors import InputError, PlannerError, Problem
from planner.launch.target import target_from_argv
from planner.learn.propose import Run
from planner.search.effective import candidate_of

__all__ = ["Evidenced", "check_one_place", "runs_of_field_notes", "runs_of_observations"]

FIELD_ENGINE = "SGLang nightly of 2026-05, patched for DDTREE"
FIELD_CAUSES = (
    ("cublas", "cublas-exec-failed"),
    ("illegal", "cuda-illegal-address-capture"),
    ("garbage", "garbage-output"),
    ("fails", "cublas-exec-failed"),
)
"""Words of the notes and the cause that they name. ``fails`` alone is FN-11 and FN-12: the failure of FN-10, which has
the signature of FN-04."""
NOT_EVIDENCE = frozenset({"interrupted", "ledger-locked", "port-in-use", "disk-full", "log-lost", "ssh-lost",
                          "supervisor-lost", "bench-failed", "blocked", "refused", "start-failed"})  # fmt: skip
"""Outcomes that say nothing about what the engine can do."""


@dataclass(frozen=True, slots=True)
class Evidenced:
    """Runs, and what was left out with the reason."""

    runs: tuple[Run, ...]
    left_out: tuple[str, ...]


def check_one_place(observations: Sequence[Observation], *, name: str) -> tuple[str, str]:
    """(hardware, model) of all observations.

    Raises:
        InputError: none, or several machines or models, which cannot be told apart in one answer.
    """
    if not observations:
        raise InputError([Problem("no observations", file=name, hint="check --hardware, --model and --engine-version")])
    problems = []
    for field, option in (("hardware", "--hardware"), ("model", "--model")):
        found = sorted({str(getattr(one, field)) for one in observations})
        if len(found) > 1:
            text = f"observations of {len(found)} ({', '.join(found)}): what one teaches does not hold for another"
            problems.append(Problem(text, file=name, field=field, hint=f"choose one with {option}"))
    if problems:
        raise InputError(problems)
    return observations[0].hardware, observations[0].model


def runs_of_observations(
    observations: Iterable[Observation], *, hardware: HardwareProfile, model: ModelProfile
) -> Evidenced:
    """Every observation whose settings are known. Those of a benchmark's cells are one launch and stay one run each."""
    runs: list[Run] = []
    left_out: list[str] = []
    seen: set[tuple[object, ...]] = set()
    for one in observations:
        if one.outcome.cause in NOT_EVIDENCE:
            left_out.append(f"{one.id}: {one.outcome.cause} says nothing about the engine")
            continue
        candidate = one.candidate
        if candidate is None:
            try:
                candidate = _candidate_of_argv(one, hardware, model)
            except PlannerError as error:
                left_out.append(f"{one.id}: its settings are not recorded and its command does not give them ({error})")
                continue
        launch = (one.log_digest, candidate, one.outcome.cause)
        if one.log_digest is not None and launch in seen:
            continue
        seen.add(launch)
        runs.append(
            Run(
                ref=f"observation {one.id}",
                candidate=candidate.replace(engine_version=None),
                cause=one.outcome.cause,
                outcome=_outcome_of(one),
                engine=f"SGLang {one.engine_version}" + (f" ({one.engine_commit})" if one.engine_commit else ""),
                version=one.engine_version,
            )
        )
    return Evidenced(tuple(runs), tuple(left_out))


def _candidate_of_argv(one: Observation, hardware: HardwareProfile, model: ModelProfile) -> Candidate:
    """Effective settings by what the engine would do with the command line.

    Raises:
        PlannerError: no command, flags that cannot be read, or a launch that the engine refuses.
    """
    version = parse_engine_version(one.engine_version)
    dialect = get_dialect(None)
    read = read_argv(target_from_argv(one.argv).arguments, version=version, dialect=dialect.id)
    if read.problems:
        raise InputError(f"{read.problems[0].token}: {read.problems[0].message}")
    resolution = resolve(
        read.launch, hardware=hardware, model=model, drafter=None, engine_version=version, dialect=dialect.id
    )
    if resolution.error is not None:
        raise resolution.error
    return candidate_of(resolution, dialect=dialect, drafter=None)


def _outcome_of(one: Observation) -> str:
    if not one.outcome.ok:
        return f"{one.outcome.cause}: {one.outcome.detail}"[:200] if one.outcome.detail else one.outcome.cause
    if one.tok_per_s is None:
        return "ran well"
    return f"ran well: {one.tok_per_s:.0f} tok/s" + (f" at C={one.concurrency}" if one.concurrency else "")


def runs_of_field_notes(notes: Iterable[FieldRun], *, hardware: str) -> Evidenced:
    """The launches of the field notes on one machine."""
    runs = tuple(
        Run(
            ref=f"field note {note.id}",
            candidate=note.candidate,
            cause="ok" if note.ok else next(cause for word, cause in FIELD_CAUSES if word in note.outcome.lower()),
            outcome=note.outcome,
            engine=FIELD_ENGINE,
            unstated=frozenset(note.assumed) - {"topk"},
        )
        for note in notes
        if note.hardware == hardware
    )
    return Evidenced(runs, ())
