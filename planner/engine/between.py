"""A version between two rule sets: its arguments under the names that the rules use, and the answer under its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.domain import Decision
from planner.engine.flag_table import FlagTable
from planner.engine.spelling import OLD_NAMES, dest_in_version

__all__ = ["Names"]

_NO_GRAPHS = ("disable_decode_cuda_graph", "cuda_graph_backend_decode")
"""Newer ways to turn decode graphs off, for rules that know only ``disable_cuda_graph``."""


class Names:
    """Field names of ``table`` and of ``rules``, in both directions. The same table twice changes nothing."""

    def __init__(self, table: FlagTable, rules: FlagTable) -> None:
        self._same = table.version == rules.version
        self._rules = rules.defaults
        self._own = table.defaults
        self._to_rules: dict[str, str] = {}
        if not self._same:
            for name in self._own:
                dest = name if name in self._rules else dest_in_version(name, rules)
                if dest is not None and dest != name and dest in self._rules:
                    self._to_rules[name] = dest
        self._to_own = {old: new for new, old in self._to_rules.items()}

    def for_rules(self, values: Mapping[str, Any], given: set[str]) -> tuple[dict[str, Any], set[str]]:
        """Values and names given, as the rules read them; what this version lacks is at the default of the rules."""
        if self._same:
            return dict(values), given
        merged = dict(self._rules) | {self._to_rules.get(name, name): value for name, value in values.items()}
        off = values.get(_NO_GRAPHS[0]) is True or values.get(_NO_GRAPHS[1]) == "disabled"
        if off and _NO_GRAPHS[0] not in self._rules:
            merged["disable_cuda_graph"] = True
            given = given | {"disable_cuda_graph"}
        return merged, {self._to_rules.get(name, name) for name in given}

    def own(self, name: str) -> str | None:
        """Name in this version for a name of the rules; None where the version has no such field."""
        if self._same or name in self._own or name not in self._rules:
            return name
        return self._to_own.get(name) or (OLD_NAMES[name] if OLD_NAMES.get(name) in self._own else None)

    def own_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values under this version's names."""
        return {own: value for name, value in values.items() if (own := self.own(name)) is not None}

    def own_decisions(self, decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
        """Decisions under this version's names."""
        if self._same:
            return decisions
        return tuple(
            decision if own == decision.field else decision.replace(field=own)
            for decision in decisions
            if (own := self.own(decision.field)) is not None
        )
