"""Pages in docs/ are generated from the rules; a stale page would tell a reviewer something that is not checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.render.rule_pages import page, page_text, with_catalogue
from planner.rules import RULES, Rule

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_page_is_fresh(rule: Rule) -> None:
    assert (DOCS / "rules" / f"{rule.code}.md").read_text(encoding="utf-8") == page(rule)


def test_no_page_without_a_rule() -> None:
    assert {path.stem for path in (DOCS / "rules").glob("*.md")} == {rule.code for rule in RULES}


def test_catalogue_is_fresh() -> None:
    text = (DOCS / "rules.md").read_text(encoding="utf-8")
    assert with_catalogue(text) == text


def test_page_has_the_headings_in_order() -> None:
    text = page(RULES[0])
    names = ("What it checks", "Why", "Source", "Bad", "Good", "Fix", "Known problems")
    places = [text.index(f"## {name}\n") for name in names]
    assert places == sorted(places)
    assert RULES[0].code in page_text(RULES[0])
