"""Units are the last word of a name: every numeric field of the domain ends in a known unit or is a count."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

import planner.domain as domain
from planner.domain import Value
from planner.domain.launch import Candidate, LaunchConfig
from planner.units import UNIT_SUFFIXES

ALLOWED = {
    # facts without a unit
    "sm", "schema_version", "line", "column", "margin_frac", "p_choice_better", "temperature",
    # the field's standard names (SGLang's spelling, or an index)
    "target_c", "budget", "topk", "rounds", "concurrency", "heads_per_rank", "kv_lora_rank", "q_lora_rank",
    # a value whose unit is in the name of the field that holds the estimate or limit
    "value", "low", "high", "plan", "known_good", "known_bad", "before", "after", "effective",
}  # fmt: skip


def numeric(annotation: object) -> bool:
    if annotation in (int, float):
        return True
    return any(numeric(inner) for inner in get_args(annotation) if inner is not type(None))


def fields() -> list[tuple[str, str]]:
    found = []
    for name, kind in inspect.getmembers(domain, inspect.isclass):
        if issubclass(kind, Value) and kind not in (Candidate, LaunchConfig):
            kind.model_rebuild()
            found += [(name, field) for field, info in kind.model_fields.items() if numeric(info.annotation)]
    return found


@pytest.mark.parametrize(("kind", "field"), fields())
def test_numeric_field_names_its_unit(kind: str, field: str) -> None:
    assert field.startswith("n_") or field.endswith(UNIT_SUFFIXES) or field in ALLOWED, f"{kind}.{field}"
