"""Generated parts of the documentation are what the planner says now (``python -m benchmarks.refresh_docs`` mends)."""

from __future__ import annotations

import re

import pytest

import planner
from benchmarks.plan_table import plan_row
from benchmarks.refresh_docs import between, command_table, page_list, reproduction_tables
from planner.data import load_limits
from planner.domain import Candidate, Plan
from planner.domain.limit import QUANTITIES
from tests.docs.docs_pages import ROOT, matches, run_command

DOCS = ROOT / "docs"


def test_the_reproduction_tables_are_what_the_command_prints(tmp_path):
    code, printed = run_command(("reproduce",), tmp_path)
    assert code == 0
    assert between(DOCS / "reproduction.md", "reproduce") == "\n".join(printed) + "\n" == reproduction_tables()


def test_the_readme_lists_every_command():
    assert between(ROOT / "README.md", "commands") == command_table()


def test_the_index_lists_every_page():
    assert between(DOCS / "index.md", "pages") == page_list()


@pytest.mark.parametrize(("hw", "c"), [("b300", 1), ("b300", 64), ("b300", 256), ("rtx_pro_6000", 32)])
def test_rows_of_the_plan_table_are_fresh(hw: str, c: int):
    """A few rows stand for all: the page is written as a whole."""
    part = between(DOCS / "plan_table.md", "plan-table")
    section = part[part.index(f"### {hw}\n") :]
    plan = planner.plan(hw, c)
    assert plan_row(c, plan) in section.split("\n### ")[0].splitlines()
    assert all(limit.margin_frac is None or limit.margin_frac >= 0 for limit in plan.binding)


def test_the_limits_page_speaks_of_every_built_in_limit():
    section = (DOCS / "limits.md").read_text(encoding="utf-8").split("## The built-in ones")[1]
    for limit in load_limits():
        assert f"`{limit.id}`" in section


def test_the_quantities_of_the_limits_page_are_those_of_the_code():
    text = (DOCS / "limits.md").read_text(encoding="utf-8")
    assert {name: f"| `{name}` | {meaning} |" in text for name, meaning in QUANTITIES.items()} == dict.fromkeys(
        QUANTITIES, True
    )


def test_the_design_page_names_every_room():
    text = (DOCS / "design.md").read_text(encoding="utf-8")
    table = text[text.index("| room | what |") : text.index("## Limits are data")]
    rooms = {path.parent.name for path in (ROOT / "planner").glob("*/__init__.py")}
    assert {room for room in rooms if f"`{room}/`" not in table} == set()


def test_the_keys_that_the_plan_page_names_exist():
    text = (DOCS / "plan.md").read_text(encoding="utf-8")
    paragraph = text[text.index("JSON keys:") : text.index("## Exit codes")]
    named = set(re.findall(r"`(\w+)`", paragraph))
    assert named <= {"argv", "env"} | Plan.model_fields.keys() | Candidate.model_fields.keys()
    assert named >= Candidate.model_fields.keys() - {"allreduce_fusion", "mem_fraction_static"}


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        (("a", "b", "c"), True),
        (("a", "..."), True),
        (("...", "c"), True),
        (("a", "...", "c"), True),
        (("...", "b", "..."), True),
        (("a", "...", "a", "b", "c"), False),
        (("a", "c"), False),
        (("b", "..."), False),
        (("...", "d", "..."), False),
    ],
)
def test_abridged_output_matches(shown: tuple[str, ...], same: bool):
    """Guards the guard: an abridgement that accepts everything would let every page go stale."""
    assert matches(shown, ["a", "b", "c"]) is same
