"""The field notes held against the planner: each launch's verdict, and throughput where it was measured."""

from __future__ import annotations

from dataclasses import dataclass

from planner.data.field_notes import FieldRun, field_runs
from planner.domain import Consequence, Estimate, Speculation
from planner.domain.describe import draft_words, layout_words
from planner.engine.dialects import get_dialect
from planner.engine.version import parse_engine_version
from planner.search.predicting import broken_limits, predict_candidate
from planner.search.request import Question, WorkloadInput, load_subject
from planner.search.solve import Target

__all__ = ["Reproduced", "reproduce"]

LINKED = {"B300-MLA-VERIFY-ROWS": "B300-MLA-VERIFY-ROWS-X-HEADS"}
"""A limit and the conservative reading of it that speaks wherever it does."""


@dataclass(frozen=True, slots=True)
class Reproduced:
    """One field note against the planner."""

    run: FieldRun
    what: str
    allowed: bool
    """Whether the planner would offer it."""
    broken: tuple[str, ...]
    """Limits that refuse it: those whose breaking stops or corrupts a server."""
    slow: tuple[str, ...]
    """Limits that it runs against and that only cost speed."""
    verdict_right: bool
    """Allowed exactly when it ran well, and refused by the limits that the notes imply."""
    tok_per_s: Estimate | None
    error_frac: float | None
    """(predicted - measured) / measured."""
    inside: bool | None
    """Whether the measured value lies in the 90 % interval."""
    missing: str | None
    """Measurement without which the figure is a guess."""


def reproduce() -> tuple[Reproduced, ...]:
    """Every run of the field notes, in order.

    A run with role ``calibrate`` is in the packaged calibration; the others are predicted without having been seen.
    Accept lengths are those of the runs themselves where they were recorded (4.48 of FN-01 for the other runs of
    budget 8), so that the table judges the step cost.
    """
    return tuple(_one(run) for run in field_runs())


def _one(run: FieldRun) -> Reproduced:
    question = Question(
        hw=run.hardware,
        workload=WorkloadInput(
            target_c=run.concurrency or 1, context=run.context_tok, output_len=run.output_tok, domain="code"
        ),
        model=run.model,
        drafter=run.drafter or "none",
        dialect=run.candidate.dialect,
    )
    subject = load_subject(question)
    dialect = get_dialect(run.candidate.dialect)
    target = Target(dialect, parse_engine_version(dialect.base_version))
    found = broken_limits(subject, target, run.candidate)
    broken = tuple(limit.id for limit in found if limit.consequence is not Consequence.SLOW)
    implied = {*run.limits, *(LINKED[id_] for id_ in run.limits if id_ in LINKED)}
    estimate, error, inside, missing = None, None, None, None
    if run.tok_per_s is not None:
        accept = run.accept_len or (4.48 if run.candidate.speculation is not Speculation.OFF else None)
        prediction = predict_candidate(subject, question, target, run.candidate, accept_len=accept)
        estimate = prediction.predicted.tok_per_s
        error = estimate.value / run.tok_per_s - 1.0
        inside = estimate.low <= run.tok_per_s <= estimate.high
        missing = next((note for note in prediction.sources if "allreduce_latency_s" in note), None)
    return Reproduced(
        run=run,
        what=f"{draft_words(run.candidate)}, {layout_words(run.candidate)}, "
        f"max_running_requests {run.candidate.max_running_requests}",
        allowed=not broken,
        broken=broken,
        slow=tuple(limit.id for limit in found if limit.consequence is Consequence.SLOW),
        verdict_right=set(broken) == implied and (not broken) == run.ok,
        tok_per_s=estimate,
        error_frac=error,
        inside=inside,
        missing=missing,
    )
