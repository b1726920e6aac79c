"""The rules, one a file; :mod:`planner.rules.index` lists them.

Families: FLG flags, FRM forms of writing, SPC speculation, ATT attention, MOE experts, QNT quantisation, GRF graphs,
COM communication, MEM memory, PAR parallel sizes, SCH scheduling and caches, ENV environment, PDD prefill and decode,
KNW known faults of one model, ENG the engine's own refusals. A code is never used twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.rules.base import Example, Hit, Place, Rule, Status, level_of

if TYPE_CHECKING:
    from planner.rules.context import RuleContext

    RULES: tuple[Rule, ...]

__all__ = ["RULES", "Example", "Hit", "Place", "Rule", "RuleContext", "Status", "level_of", "rule_of"]


def __getattr__(name: str) -> Any:
    """``RULES`` imports every rule, so it is made when it is asked for."""
    if name == "RULES":
        from planner.rules.index import all_rules

        return all_rules()
    if name == "RuleContext":
        from planner.rules.context import RuleContext

        return RuleContext
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def rule_of(name: str) -> Rule | None:
    """The rule of a code or slug, in any case; None when there is none."""
    from planner.rules.index import INDEX, all_rules, load_rule

    wanted = name.strip().lower()
    module = next((module for module, _ in INDEX if module.partition("_")[0] == wanted), None)
    if module is not None:
        return load_rule(module)
    return next((rule for rule in all_rules() if wanted == rule.slug), None)
