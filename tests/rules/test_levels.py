"""The level of a finding: consequence first, one step down for suspicion, one for an unknown version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.domain import Consequence, Level
from planner.rules import RULES, Hit, Rule, Status, level_of

BASE = replace(RULES[0], informs=False, versions="")


@pytest.mark.parametrize("consequence", list(Consequence))
def test_consequence_gives_the_level(consequence: Consequence) -> None:
    rule = replace(BASE, consequence=consequence, status=Status.ESTABLISHED)
    wanted = Level.ERROR if consequence.value in ("crash", "oom", "wrong_output", "hang") else Level.WARNING
    assert level_of(rule, Hit(""), version_known=True) is wanted


def crash(**changes: object) -> Rule:
    return replace(BASE, consequence=Consequence.CRASH, **changes)  # type: ignore[arg-type]


def test_softening() -> None:
    """A fault of every known version stays an error although the version is unknown."""
    always, bound = crash(status=Status.ESTABLISHED), crash(status=Status.ESTABLISHED, versions="<0.5.11")
    assert level_of(always, Hit(""), version_known=False) is Level.ERROR
    assert level_of(bound, Hit(""), version_known=True) is Level.ERROR
    assert level_of(bound, Hit(""), version_known=False) is Level.WARNING
    suspected = crash(status=Status.SUSPECTED, versions="<0.5.11")
    assert level_of(suspected, Hit(""), version_known=True) is Level.WARNING
    assert level_of(suspected, Hit(""), version_known=False) is Level.NOTE
    assert level_of(always, Hit("", informs=True), version_known=True) is Level.NOTE
    assert level_of(always, Hit("", suspected=True), version_known=True) is Level.WARNING
