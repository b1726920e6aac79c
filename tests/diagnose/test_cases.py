"""Every cause is found from its words and is not taken for its neighbours. Cases are data: cases.toml."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from planner.diagnose import Confidence, diagnose_lines
from planner.diagnose.catalogue import causes, signatures

CASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))["case"]


def case_id(case: dict[str, Any]) -> str:
    return f"{case['slug']}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_case(case: dict[str, Any]) -> None:
    lines = case["log"].strip("\n").split("\n")
    diagnosis = diagnose_lines(lines)
    assert diagnosis.cause == case["slug"]
    assert diagnosis.cause not in case.get("near", [])
    assert diagnosis.level is Confidence.of(diagnosis.confidence)
    if "confidence_below" in case:
        assert diagnosis.confidence < case["confidence_below"]
    if "phase" in case:
        assert diagnosis.phase == case["phase"]
    if "limit" in case:
        assert diagnosis.suggested_limit is not None
        assert diagnosis.suggested_limit.quantity == case["limit"]["quantity"]
        assert diagnosis.suggested_limit.value == pytest.approx(case["limit"]["value"])
    for line in diagnosis.lines:
        assert 1 <= line.number <= len(lines)
    if diagnosis.cause not in ("healthy", "unknown"):
        assert diagnosis.lines
        assert diagnosis.remedies


def test_every_cause_has_three_examples() -> None:
    counts = Counter(case["slug"] for case in CASES)
    assert {slug: counts[slug] for slug in causes() if counts[slug] < 3} == {}


def test_every_cause_has_a_near_miss() -> None:
    """A neighbour's log that must not be called by this slug, for each slug of the catalogue that has neighbours."""
    near = {slug for case in CASES for slug in case.get("near", [])}
    exempt = {"unknown", "model-unsupported", "model-access", "host-oom-killed", "gpu-occupied", "cuda-init"}
    exempt |= {"kernel-launch-failed-runtime", "option-incompatible", "oom-runtime"}
    assert set(causes()) - near - exempt == set()


def test_catalogue_refers_to_itself_only() -> None:
    known = causes()
    for cause in known.values():
        assert {item.slug for item in cause.not_} <= set(known) - {cause.slug}
        assert cause.explains <= set(known)
        assert cause.slug == "healthy" or cause.remedies
    for signature in signatures():
        assert signature.cause.startswith("@") or signature.cause in known
        assert 0 < signature.strength <= 1


def test_triggers_hold_no_digits() -> None:
    """Lines that differ in digits only share one verdict of the prefilter, so no trigger may depend on a digit."""
    from planner.diagnose.catalogue import markers, traits

    for item in (*signatures(), *markers(), *traits()):
        assert item.triggers
        assert not [trigger for trigger in item.triggers if any(char.isdigit() for char in trigger)]


def test_every_signature_is_used_by_a_case() -> None:
    """A signature that no case reaches is untested."""
    seen: set[str] = set()
    for case in CASES:
        for line in case["log"].split("\n"):
            seen |= {signature.id for signature in signatures() if signature.matches(line)}
    assert {signature.id for signature in signatures()} - seen == set()
