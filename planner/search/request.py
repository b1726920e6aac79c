"""A question in the user's words (ids, numbers, files) becomes a loaded, checked one; every fault is told at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from planner._record import record
from planner.data import load_drafter, load_hardware, load_limits, load_model, packaged_ids
from planner.data.field_notes import field_runs
from planner.domain import Candidate, DrafterProfile, HardwareProfile, Limit, ModelProfile, Workload
from planner.domain.faults import faults_of
from planner.engine.dialects import DIALECTS, Dialect, get_dialect
from planner.engine.version import EngineVersion, parse_engine_version
from planner.errors import InputError, Problem, nearest_hint
from planner.search.space import Pins, check_pins

if TYPE_CHECKING:
    from planner.search.calibrations import OwnCalibration

__all__ = [
    "DEFAULT_CONTEXT_LENGTH_TOK",
    "Question",
    "Subject",
    "WorkloadInput",
    "load_subject",
    "read_workload",
    "served_length",
]

DEFAULT_CONTEXT_LENGTH_TOK = 32768
"""Context length that a planned server admits when requests are shorter: that of the field notes."""

RISKS = ("safe", "edge")

_OPTION = {
    "target_c": "--target-c",
    "context_tok": "--context",
    "output_tok": "--output-len",
    "prefix_hit_frac": "--prefix-hit",
    "temperature": "--temperature",
    "domain": "--domain",
    "needs": "--needs",
    "max_ttft_s": "--max-ttft-ms",
    "max_tpot_s": "--max-tpot-ms",
    "min_tok_per_s_per_user": "--min-tok-per-user",
}


@record()
class WorkloadInput:
    """Traffic as written on the command line."""

    target_c: object = 1
    context: object = 1024
    output_len: object = 1024
    prefix_hit: object = 0.0
    temperature: object = 0.0
    domain: str = "unknown"
    needs: Iterable[str] = ()
    max_ttft_ms: object = None
    max_tpot_ms: object = None
    min_tok_per_user: object = None
    allow_queue: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any] | Workload) -> WorkloadInput:
        """From keywords or from a workload that was read before.

        Raises:
            InputError: an unknown name, or neither of the two.
        """
        if isinstance(given, Mapping):
            return cls.from_mapping(given)
        if not isinstance(given, Workload):
            message = f"must be a mapping of keywords or a Workload (got {type(given).__name__})"
            raise InputError([Problem(message, field="workload", hint='write {"target_c": 64}')])
        return cls(
            target_c=given.target_c,
            context=given.context_tok,
            output_len=given.output_tok,
            prefix_hit=given.prefix_hit_frac,
            temperature=given.temperature,
            domain=given.domain,
            needs=given.needs,
            max_ttft_ms=None if given.max_ttft_s is None else given.max_ttft_s * 1e3,
            max_tpot_ms=None if given.max_tpot_s is None else given.max_tpot_s * 1e3,
            min_tok_per_user=given.min_tok_per_s_per_user,
            allow_queue=given.allow_queue,
        )

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> WorkloadInput:
        """From keywords.

        Raises:
            InputError: an unknown name.
        """
        known = [field.name for field in fields(cls)]
        unknown = [name for name in given if name not in known]
        if isinstance(needs := given.get("needs"), str):
            given = {**given, "needs": [need.strip() for need in needs.split(",") if need.strip()]}
        if unknown:
            raise InputError(
                [
                    Problem("unknown keyword", field=f"workload.{name}", hint=nearest_hint(name, known))
                    for name in unknown
                ]
            )
        return cls(**given)


@record()
class Question:
    """Everything that may be asked of a plan."""

    hw: str | Path | HardwareProfile
    workload: WorkloadInput
    model: str | Path | ModelProfile = "kimi-k2.6"
    drafter: str | Path | DrafterProfile | None = "auto"
    limits: Sequence[str | Path] = ()
    engine_version: str | None = None
    dialect: str | None = None
    risk: str = "safe"
    lift: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    pins: Pins = field(default_factory=Pins)
    robust: float | None = None
    calibration: str | Path | None = None


@record(eq=False)
class Subject:
    """The loaded parts of a question."""

    hardware: HardwareProfile
    model: ModelProfile
    drafter: DrafterProfile | None
    workload: Workload
    limits: tuple[Limit, ...]
    version: EngineVersion | None
    dialect: Dialect | None
    n_gpus: int
    measured: tuple[Candidate, ...]
    calibration: OwnCalibration | None = None


def load_subject(question: Question) -> Subject:
    """Load and check every part of a question.

    Raises:
        InputError: every problem of every part, together.
    """
    problems: list[Problem] = []

    def attempt(load: Any, *args: Any) -> Any:
        try:
            return load(*args)
        except InputError as error:
            problems.extend(error.problems)
            return None

    hardware: HardwareProfile | None = attempt(load_hardware, question.hw)
    model: ModelProfile | None = attempt(load_model, question.model)
    workload: Workload | None = attempt(read_workload, question.workload)
    limits: tuple[Limit, ...] | None = attempt(load_limits, question.limits)
    dialect: Dialect | None = attempt(get_dialect, question.dialect) if question.dialect is not None else None
    version: EngineVersion | None = (
        attempt(parse_engine_version, question.engine_version) if question.engine_version is not None else None
    )
    drafter: DrafterProfile | None = None
    if model is not None or question.drafter not in (None, "auto", "none"):
        drafter = attempt(_drafter_for, question.drafter, model)
    calibration: OwnCalibration | None = None
    if question.calibration is not None and hardware is not None and model is not None:
        from planner.search.calibrations import load_calibration

        calibration = attempt(load_calibration, question.calibration, hardware, model)
    if question.risk not in RISKS:
        problems.append(Problem(f"unknown risk {question.risk!r}", field="--risk", hint=f"one of {', '.join(RISKS)}"))
    problems.extend(_check_lifts(question.lift, limits if limits is not None else load_limits()))
    if question.robust is not None and not 0 < question.robust < 1:
        problems.append(
            Problem(
                "must lie between 0 and 1", field="--robust", value=question.robust, hint="0.1 is the 10 % quantile"
            )
        )
    n_gpus = question.gpus if question.gpus is not None else (hardware.n_gpus if hardware is not None else 1)
    if n_gpus < 1 or (hardware is not None and n_gpus > hardware.n_gpus):
        most = hardware.n_gpus if hardware is not None else 1
        problems.append(Problem(f"{n_gpus} GPUs", field="--gpus", value=n_gpus, hint=f"this box has 1 to {most}"))
    elif hardware is not None and model is not None:
        problems.extend(check_pins(hardware, model, drafter, n_gpus, question.pins))
    if workload is not None and model is not None and workload.peak_context_tok > model.max_context_tok:
        problems.append(
            Problem(
                f"prompt and output together are {workload.peak_context_tok:,} tokens, "
                f"{model.id} is made for {model.max_context_tok:,}",
                field="--context",
                value=workload.context_tok,
                hint="a shorter --context or --output-len",
            )
        )
    if problems:
        raise InputError(problems)
    assert hardware is not None
    assert model is not None
    assert workload is not None
    assert limits is not None
    measured = tuple(
        run.candidate
        for run in field_runs()
        if run.ok and run.tok_per_s and (run.hardware, run.model) == (hardware.id, model.id)
    )
    return Subject(hardware, model, drafter, workload, limits, version, dialect, n_gpus, measured, calibration)


def read_workload(given: WorkloadInput) -> Workload:
    """Check the traffic.

    Raises:
        InputError: every value out of range, by option.
    """
    problems: list[Problem] = []
    values: dict[str, Any] = {
        "target_c": _number(given.target_c, "--target-c", problems, whole=True),
        "context_tok": _number(given.context, "--context", problems, whole=True),
        "output_tok": _number(given.output_len, "--output-len", problems, whole=True),
        "prefix_hit_frac": _number(given.prefix_hit, "--prefix-hit", problems),
        "temperature": _number(given.temperature, "--temperature", problems),
        "domain": given.domain,
        "needs": frozenset(given.needs),
        "max_ttft_s": _milliseconds(given.max_ttft_ms, "--max-ttft-ms", problems),
        "max_tpot_s": _milliseconds(given.max_tpot_ms, "--max-tpot-ms", problems),
        "min_tok_per_s_per_user": (
            None if given.min_tok_per_user is None else _number(given.min_tok_per_user, "--min-tok-per-user", problems)
        ),
        "allow_queue": given.allow_queue,
    }
    bad = {problem.field for problem in problems}
    try:
        workload = Workload(**values)
    except ValidationError as error:
        for location, problem in faults_of(error, Workload):
            option = _OPTION.get(str(location[0]), str(location[0]))
            if option not in bad:
                problems.append(replace(problem, field=option))
        raise InputError(problems) from None
    if problems:
        raise InputError(problems)
    return workload


def served_length(workload: Workload, model: ModelProfile) -> int:
    """``--context-length`` of the planned server: 32768, or what the requests need, never above the model's own."""
    needed = -(-workload.peak_context_tok // 1024) * 1024
    return min(model.max_context_tok, max(DEFAULT_CONTEXT_LENGTH_TOK, needed))


def _number(value: object, option: str, problems: list[Problem], *, whole: bool = False) -> int | float | None:
    """A finite number from a number or its text; a fault is added to ``problems``."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number) or (whole and number != int(number)):
        kind = "whole number" if whole else "number"
        problems.append(Problem(f"must be a {kind} (got {value!r})", field=option, value=value))
        return None
    return int(number) if whole else number


def _milliseconds(value: object, option: str, problems: list[Problem]) -> float | None:
    if value is None:
        return None
    number = _number(value, option, problems)
    return None if number is None else number / 1e3


def _drafter_for(ref: str | Path | DrafterProfile | None, model: ModelProfile | None) -> DrafterProfile | None:
    """The drafter named; with ``auto`` the one that was trained for the model, if any."""
    if ref is None or ref == "none":
        return None
    if ref != "auto":
        return load_drafter(ref)
    assert model is not None
    for id_ in packaged_ids("drafter"):
        drafter = load_drafter(id_)
        if model.id in drafter.targets:
            return drafter
    return None


def _check_lifts(lifts: Mapping[str, str], limits: Sequence[Limit]) -> list[Problem]:
    known = [limit.id for limit in limits]
    problems = []
    for id_, reason in lifts.items():
        if id_ not in known:
            problems.append(Problem(f"unknown limit {id_!r}", field="--lift", value=id_, hint=nearest_hint(id_, known)))
        if not reason.strip():
            problems.append(
                Problem(f"{id_} has no reason", field="--lift", hint=f'write --lift {id_}="why it is safe"')
            )
    return problems


def dialect_names() -> list[str]:
    """Ids of all dialects."""
    return sorted(DIALECTS)
