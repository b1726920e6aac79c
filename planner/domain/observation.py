"""Observation: one measured run of one launch. The only evidence that fits and limits are made from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.domain.base import Value
from planner.domain.launch import Candidate

__all__ = ["Metric", "Observation", "Outcome"]


class Metric(Value):
    """One more measured number, for which there is no field."""

    name: str
    value: float
    unit: str
    """``tok/s``, ``s``, ``W``, ``MHz``, ``1`` ..."""
    low: float | None = None
    high: float | None = None


class Outcome(Value):
    """How the run ended: ``ok`` or a diagnosis slug, with the line that shows it."""

    cause: str
    detail: str | None = None

    @property
    def ok(self) -> bool:
        return self.cause == "ok"


class Observation(Value):
    """One run. Numbers that were not measured are None, never guessed."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    id: str
    hardware: str
    model: str
    drafter: str | None = None
    engine_version: str
    engine_commit: str | None = None
    candidate: Candidate | None = None
    """Effective settings where they could be read."""
    argv: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    concurrency: Annotated[int, Field(ge=1)] | None = None
    context_tok: Annotated[int, Field(ge=1)] | None = None
    output_tok: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    domain: str = "unknown"
    tok_per_s: Annotated[float, Field(gt=0)] | None = None
    accept_len: Annotated[float, Field(ge=1)] | None = None
    step_s: Annotated[float, Field(gt=0)] | None = None
    ttft_s: Annotated[float, Field(gt=0)] | None = None
    tpot_s: Annotated[float, Field(gt=0)] | None = None
    power_w: Annotated[float, Field(gt=0)] | None = None
    """Mean of one device."""
    metrics: tuple[Metric, ...] = ()
    """Everything else that was measured."""
    effective: tuple[tuple[str, bool | int | float | str], ...] = ()
    """Settings in force, as the server says, in its own spelling."""
    driver: str | None = None
    """Driver and device as the driver names them."""
    n_repeats: Annotated[int, Field(ge=1)] = 1
    spread_frac: Annotated[float, Field(ge=0)] | None = None
    """Half width of the repeats' range over their median."""
    outcome: Outcome = Outcome(cause="ok")
    log_digest: str | None = None
    recorded_at: str | None = None
    """UTC, ISO 8601."""
    source: str
    """Who measured it and where that is written."""
