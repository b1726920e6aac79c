"""Tables of cases by rule: what fires, at which level, and the near misses that must stay silent."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from planner.review import check
from planner.rules import RULES

FOLDER = Path(__file__).parent / "cases"
TABLES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["case"] for path in sorted(FOLDER.glob("*.toml"))}
ROWS = [pytest.param(code, row, id=f"{code}-{row['name']}") for code, rows in TABLES.items() for row in rows]


def test_every_rule_has_a_table_with_a_case_and_a_near_miss() -> None:
    assert set(TABLES) == {rule.code for rule in RULES}
    for code, rows in TABLES.items():
        expected = {row["expect"] for row in rows}
        assert "silent" in expected, code
        assert expected - {"silent"}, code


@pytest.mark.parametrize(("code", "row"), ROWS)
def test_level(code: str, row: dict[str, Any]) -> None:
    report = check(
        row["text"],
        form=row.get("form"),
        hw=row.get("hw"),
        gpus=row.get("gpus"),
        model=row.get("model"),
        drafter=row.get("drafter"),
        engine_version=row.get("version"),
        dialect=row.get("dialect"),
    )
    levels = [finding.level.value for finding in report.findings if finding.code == code]
    assert (levels or ["silent"])[0] == row["expect"]
