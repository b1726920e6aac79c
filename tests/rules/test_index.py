"""The index of rules: every rule stands in it, and no row asks for more than its rule does."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import planner.rules
from planner.data import load_limits
from planner.parse import parse_text
from planner.review import load_subject, review_file
from planner.rules import RULES, Rule, RuleContext
from planner.rules.index import INDEX, can_speak, load_rule, rules_for

LIMITS = load_limits()


@cache
def contexts() -> tuple[RuleContext, ...]:
    """Every launch of every example."""
    found: list[RuleContext] = []
    for example in {example for rule in RULES for example in (rule.bad, rule.good)}:
        options = example.options()
        form = options.pop("form", None)
        parsed = parse_text(example.text, name="x", form=str(form) if form is not None else None)
        found += review_file(parsed, subject=load_subject(**options), limits=LIMITS).contexts  # type: ignore[arg-type]
    return tuple(found)


def test_every_module_stands_in_the_index() -> None:
    """A rule that is left out of the index is never run."""
    folder = Path(next(iter(planner.rules.__path__)))
    modules = {path.stem for path in folder.glob("*.py") if "\nRULE = " in path.read_text(encoding="utf-8")}
    assert sorted(modules) == sorted(module for module, _ in INDEX)
    assert all(load_rule(module).code == module.partition("_")[0].upper() for module, _ in INDEX)


@pytest.mark.parametrize(("module", "needs"), [row for row in INDEX if row[1]], ids=lambda text: str(text)[:6])
def test_a_row_never_asks_for_more_than_its_rule(module: str, needs: str) -> None:
    """Over all launches of all examples: a launch without what the row asks for gets no hit from the rule."""
    rule = load_rule(module)
    passed_over = [context for context in contexts() if not can_speak(needs, context)]
    assert passed_over, "a row that passes nothing over is not needed"
    assert [context.launch for context in passed_over if list(rule.check(context))] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_bad_example_reaches_its_rule(rule: Rule) -> None:
    options = rule.bad.options()
    form = options.pop("form", None)
    parsed = parse_text(rule.bad.text, name="x", form=str(form) if form is not None else None)
    first = review_file(parsed, subject=load_subject(**options)).contexts  # type: ignore[arg-type]
    assert any(rule in rules_for(context) for context in first)
