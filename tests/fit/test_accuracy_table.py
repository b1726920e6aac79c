"""The accuracy table: computed now, printed in two forms, quoted in the documentation."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from planner.domain.fitting import AccuracyRow
from planner.render.accuracy import accuracy_json, accuracy_markdown, accuracy_text
from planner.search.accuracy import accuracy

BEGIN, END = "<!-- accuracy:begin -->\n", "<!-- accuracy:end -->\n"
PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


@pytest.fixture(scope="module")
def rows() -> list[AccuracyRow]:
    return accuracy()


def test_the_page_quotes_the_table_of_today(rows):
    text = PAGE.read_text(encoding="utf-8")
    quoted = text.split(BEGIN)[1].split(END)[0]
    assert quoted == accuracy_markdown(rows), "docs/accuracy.md is not up to date: paste accuracy_markdown(accuracy())"


def test_the_page_owns_up_to_every_missed_goal(rows):
    missed = [row.group for row in rows if row.met is False]
    text = PAGE.read_text(encoding="utf-8")
    if missed:
        assert all(group in text.split(END)[1] for group in missed)
    else:
        assert "No goal of the table is missed on the data that ship." in text


GOALS = [
    "acceptance, 1 budget known",
    "acceptance, 2 budgets known",
    "acceptance, 3 budgets known",
    "chain length, 2 points known",
    "acceptance, 90 % interval",
    "b200 left out",
    "h200 left out",
    "lowest and highest C known",
    "round time on a (C, q_len) grid",
    "time of a fit of 10 observations",
]


@pytest.mark.parametrize("part", GOALS)
def test_every_goal_has_its_row(rows, part):
    found = [row for row in rows if part in row.group and "put back" not in row.group]
    assert found
    assert all(row.goal and row.met is not None for row in found)


def test_excluded_rows_are_shown_both_ways(rows):
    put_back = [row.group for row in rows if row.group.endswith(", excluded rows put back")]
    assert len(put_back) == 3
    groups = {row.group for row in rows}
    assert all(group.removesuffix(", excluded rows put back") in groups for group in put_back)


def test_figures_are_fractions(rows):
    for row in rows:
        for value in (row.mape, row.p90, row.coverage):
            assert value is None or 0 <= value <= 1
        if row.mape is not None and row.p90 is not None:
            assert row.p90 >= row.mape / 2


def test_json_is_a_list_of_the_documented_keys(rows):
    body = json.loads(accuracy_json(rows))
    assert len(body) == len(rows)
    keys = {"group", "n", "mape", "p90", "bias", "coverage", "goal", "met", "note"}
    assert all(set(entry) == keys for entry in body)
    assert all(entry["mape"] is None or math.isfinite(entry["mape"]) for entry in body)


def test_text_names_what_is_missed():
    good = AccuracyRow("good", 3, 0.01, 0.02, 0.0, 0.9, "MAPE <= 3 %", True, "note a")
    bad = AccuracyRow("bad", 3, 0.05, 0.08, 0.0, 0.5, "MAPE <= 3 %", False, "note a")
    text = accuracy_text([good, bad])
    assert "1 of 2 goals met" in text
    assert "missed: bad (MAPE <= 3 %)" in text
    assert "rows 1-2: note a" in text
    assert "MAPE <= 3 %: MISSED" in accuracy_markdown([bad])


def test_the_command_prints_it_and_ends_well(run, monkeypatch, rows):
    monkeypatch.setattr("planner.search.accuracy.accuracy", lambda: rows)
    shown = run("accuracy")
    assert shown.code == 0
    assert "goals met" in shown.out
    assert json.loads(run("accuracy", "--format", "json").out)[0]["group"] == rows[0].group
