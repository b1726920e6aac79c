"""Every rule: its form, its documentation, and that ``bad`` fires it, ``good`` does not and ``fix`` clears it."""

from __future__ import annotations

import re

import pytest

from planner.domain import Consequence
from planner.review import check
from planner.rules import RULES, Example, Rule, rule_of
from planner.rules.base import HEADINGS, Status


def codes(example: Example) -> list[str]:
    return [finding.code for finding in check(example.text, **example.options()).findings]  # type: ignore[arg-type]


def test_at_least_seventy_rules() -> None:
    assert len(RULES) >= 70


def test_codes_and_slugs_are_unique_and_ordered() -> None:
    """A code is cited in suppressions and documents: it must name one rule for ever."""
    names = [rule.code for rule in RULES]
    slugs = [rule.slug for rule in RULES]
    assert len(set(names)) == len(names)
    assert len(set(slugs)) == len(slugs)
    assert names[:-1] == sorted(names[:-1])
    assert names[-1] == "ENG001"
    assert all(re.fullmatch(r"[A-Z]{3}\d{3}", name) for name in names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) for slug in slugs)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_documentation_is_complete(rule: Rule) -> None:
    sections = rule.sections()
    assert set(sections) == {"summary", *HEADINGS}
    assert all(text for text in sections.values()), rule.code
    assert sections["summary"].rstrip(".") == rule.title
    assert rule.sources
    assert all(len(source) > 8 for source in rule.sources)
    assert isinstance(rule.consequence, Consequence)
    assert isinstance(rule.status, Status)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_bad_fires_and_good_does_not(rule: Rule) -> None:
    assert rule.code in codes(rule.bad), "bad example does not fire"
    assert rule.code not in codes(rule.good), "good example fires"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_good_has_no_error(rule: Rule) -> None:
    """What a page shows as the way out must not be refused by another rule."""
    report = check(rule.good.text, **rule.good.options())  # type: ignore[arg-type]
    assert not [f"{f.code}: {f.message}" for f in report.findings if f.level.value == "error"]


def test_a_rule_is_found_by_code_and_slug() -> None:
    assert rule_of("spc001") is rule_of("numbers-without-algorithm") is RULES[[r.code for r in RULES].index("SPC001")]
    assert rule_of("XYZ999") is None
