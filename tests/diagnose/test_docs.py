"""The page lists the catalogue as it is."""

from __future__ import annotations

from pathlib import Path

from planner.diagnose.catalogue import causes

PAGE = Path(__file__).parents[2] / "docs" / "diagnose.md"


def test_every_slug_stands_in_the_page_with_its_title() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for cause in causes().values():
        assert f"| `{cause.slug}` | {cause.title} |" in text


def test_the_page_names_no_slug_that_is_gone() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert {row.split("`")[1] for row in rows} == set(causes())
