"""The field notes as data: each launch that was tried, its settings and what became of it."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from planner.data.files import read_text
from planner.data.toml_source import parse_toml
from planner.data.validate import build
from planner.domain import Candidate, Value

__all__ = ["FieldRun", "field_runs"]


class FieldRun(Value):
    """One launch of the field notes (FN-01 to FN-18)."""

    id: str
    hardware: str
    model: str
    drafter: str | None = None
    candidate: Candidate
    assumed: tuple[str, ...] = ()
    """Fields of the candidate that the notes do not state."""
    concurrency: Annotated[int, Field(ge=1)] | None = None
    context_tok: Annotated[int, Field(ge=1)] = 1024
    output_tok: Annotated[int, Field(ge=1)] = 1024
    ok: bool
    """Whether it ran and answered rightly."""
    outcome: str
    tok_per_s: Annotated[float, Field(gt=0)] | None = None
    accept_len: Annotated[float, Field(ge=1)] | None = None
    accept_low: Annotated[float, Field(ge=1)] | None = None
    accept_high: Annotated[float, Field(ge=1)] | None = None
    limits: tuple[str, ...] = ()
    """Limits that must refuse it, for a run that failed."""
    role: str = ""
    """``calibrate``: its throughput is in the packaged calibration; ``predict``: it is not."""


@cache
def field_runs() -> tuple[FieldRun, ...]:
    """All runs, in the order of the notes."""
    source = parse_toml(read_text("field_notes.toml"), name="planner.data/field_notes.toml")
    entries = source.data["run"]
    return tuple(build(FieldRun, entry, source=source, at=("run", index)) for index, entry in enumerate(entries))
