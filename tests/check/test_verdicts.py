"""Real launches and what became of them: the review must say the same, and must not cry wolf."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check import verdicts

CASES = verdicts.load_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_verdict(case: dict[str, Any]) -> None:
    report = verdicts.report_of(case)
    worst = report.worst.value if report.worst is not None else "none"
    assert worst in verdicts.RIGHT[case["verdict"]], [f"{f.code} {f.level} {f.message}" for f in report.findings]
    assert not report.unreadable


def test_no_error_on_a_launch_that_ran_well() -> None:
    for case in CASES:
        if case["kind"] == "fine":
            assert all(finding.level.value != "error" for finding in verdicts.report_of(case).findings), case["id"]


def test_table_in_the_page_is_fresh() -> None:
    text = verdicts.PAGE.read_text(encoding="utf-8")
    assert verdicts.renewed(text) == text
