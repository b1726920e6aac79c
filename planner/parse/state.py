"""Variables of a shell script on one path through its branches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from planner.parse.model import EnvHow
from planner.parse.parameters import Var
from planner.parse.setting import ENGINE_VARIABLE, EnvItem
from planner.parse.source import HOLE, HOLE_MANY, LONGEST, Field, Mapped

__all__ = ["State", "is_engine_variable", "merge", "reaching_names", "referenced_names"]

MOST_ITEMS = 5_000
"""Items of an array that are followed."""
MOST_STATES = 16
"""Paths kept apart. Beyond it, values that differ become unknown with their alternatives listed."""
_REFERENCE = re.compile(r"\$\{?[#!]?([A-Za-z_]\w*)|\(\(([^)]*)\)\)|-v\s+([A-Za-z_]\w*)")
_SILENT_LINE = re.compile(r"^[ \t]*(?:#|echo\b|printf\b).*$", re.MULTILINE)


def is_engine_variable(name: str) -> bool:
    """Whether the engine or one of its libraries reads a variable of that name."""
    return ENGINE_VARIABLE.fullmatch(name) is not None


@dataclass(eq=False, repr=False)
class State:
    """One path: what is assigned, what was assumed to get here."""

    vars: dict[str, Var] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    assumed: dict[str, bool] = field(default_factory=dict)
    ended: bool = False
    returned: bool = False
    export_all: bool = False

    def get(self, name: str) -> Var | None:
        """The variable, or None when nothing assigned it."""
        return self.vars.get(name)

    def assign(self, name: str, value: Var) -> None:
        """Sets a variable; a variable that is exported stays exported."""
        before = self.vars.get(name)
        if value.items is not None and len(value.items) > MOST_ITEMS:
            at = value.value_at or (0, 0)
            value = replace(value, items=(Field(Mapped.at(HOLE_MANY, *at), *at),))
        elif value.value is not None and len(value.value.text) > LONGEST:
            value = replace(value, value=Mapped.at(HOLE, *(value.value_at or (0, 0))))
        if self.export_all or (before is not None and before.exported):
            value = replace(value, exported=True)
        self.vars[name] = value
        if self.assumed:
            self.assumed = {text: truth for text, truth in self.assumed.items() if name not in text}

    def copy(self, condition: str | None = None) -> State:
        """The same path, one condition further."""
        conditions = self.conditions
        if condition is not None and condition not in conditions:
            conditions = (*conditions, condition)
        return State(dict(self.vars), conditions, dict(self.assumed), self.ended, self.returned, self.export_all)

    def env(self, names: frozenset[str]) -> list[EnvItem]:
        """Exported variables, and engine variables set without export that the script does not use (``names``)."""
        items = []
        for name, var in self.vars.items():
            if var.name_at is None or var.value is None:
                continue
            if not var.exported and (name in names or not is_engine_variable(name)):
                continue
            start, end = var.value_at or (var.name_at[1], var.name_at[1])
            value = Field(var.value, start, end, var.by_default, var.alternatives, layers=var.layers)
            how = EnvHow.PREFIX if var.prefix else EnvHow.EXPORT if var.exported else EnvHow.PLAIN
            items.append(EnvItem(name, value, how, var.exported, var.name_at))
        return items


def referenced_names(text: str) -> frozenset[str]:
    """Names that a text reads, outside of what it prints."""
    names: set[str] = set()
    for match in _REFERENCE.finditer(_SILENT_LINE.sub("", text)):
        if match.group(2) is not None:
            names.update(re.findall(r"[A-Za-z_]\w*", match.group(2)))
        else:
            names.add(match.group(1) or match.group(3))
    return frozenset(names)


def reaching_names(seeds: Iterable[str], assigned: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Names whose values can reach ``seeds`` through assignments, given as ``(name, text of the value)``."""
    reads: dict[str, set[str]] = {}
    for name, text in assigned:
        reads.setdefault(name, set()).update(referenced_names(text))
    reached: set[str] = set()
    waiting = list(seeds)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(reads.get(name, ()))
    return frozenset(reached)


def merge(states: Sequence[State], names: frozenset[str]) -> list[State]:
    """Joins paths that do not differ in what the script still reads; keeps at most ``MOST_STATES``."""
    groups: dict[tuple[object, ...], list[State]] = {}
    for state in states:
        if state.ended:
            continue
        seen = tuple(
            (name, var.key()) for name, var in sorted(state.vars.items()) if name in names or _tells(name, var)
        )
        groups.setdefault((seen, state.returned, state.export_all), []).append(state)
    merged = [_joined(group) for group in groups.values()]
    if len(merged) > MOST_STATES:
        returned = [state for state in merged if state.returned]
        going = [state for state in merged if not state.returned]
        merged = [_blurred(part) for part in (going, returned) if part]
    return merged


def _tells(name: str, var: Var) -> bool:
    """Whether a variable that no launch word reads still tells two launches apart: the engine reads it."""
    return not name[0].isalpha() or (is_engine_variable(name) and var.name_at is not None)


def _joined(group: Sequence[State]) -> State:
    first = group[0]
    if len(group) > 1:
        first.conditions = tuple(
            text for text in first.conditions if all(text in other.conditions for other in group[1:])
        )
        first.assumed = dict(_common(state.assumed.items() for state in group))
    return first


def _common(groups: Iterable[Iterable[tuple[str, bool]]]) -> set[tuple[str, bool]]:
    sets = [set(group) for group in groups]
    return set.intersection(*sets) if sets else set()


def _blurred(states: Sequence[State]) -> State:
    base = _joined(states)
    names = sorted({name for state in states for name in state.vars})
    for name in names:
        found = [state.vars.get(name) for state in states]
        if all(
            var is not None and base.vars.get(name) is not None and var.key() == base.vars[name].key() for var in found
        ):
            continue
        base.vars[name] = unknown_of(found)
    return base


def unknown_of(found: Sequence[Var | None]) -> Var:
    """A variable of unknown value, with the values it may have when all are known."""
    texts = {None if var is None or var.value is None or var.value.has_hole else var.value.text for var in found}
    known = tuple(sorted(text for text in texts if text is not None))
    kept = next((var for var in found if var is not None), None)
    place = kept.value_at if kept is not None and kept.value_at is not None else (0, 0)
    return Var(
        value=Mapped(HOLE, [place[0]], [max(place[1], place[0])]),
        exported=any(var is not None and var.exported for var in found),
        name_at=kept.name_at if kept is not None else None,
        value_at=kept.value_at if kept is not None else None,
        alternatives=known if len(known) == len(texts) else (),
        layers=kept.layers if kept is not None else (),
    )
