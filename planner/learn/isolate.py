"""Which settings of a failing launch cause the failure: delta debugging over named changes.

``passes(set)`` runs the launch with only these changes made to a launch that works. The search assumes that adding a
change never mends a failure; where a run says otherwise, that is reported and not averaged away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import combinations

from planner.domain import Value
from planner.errors import InputError

__all__ = ["Isolation", "Standing", "isolate"]


class Standing(StrEnum):
    """What is known of one change, or of a pair of them."""

    GUILTY = "guilty"
    """Alone it makes the launch fail."""
    PART = "part"
    """Part of a smallest failing set, harmless alone."""
    INNOCENT = "innocent"
    """In a set that ran well: it and every part of it are harmless."""
    NOT_NEEDED = "not_needed"
    """The failure stands without it; whether it would fail by itself was not seen."""


class Isolation(Value):
    """The smallest failing sets and the standing of every change and pair."""

    causes: tuple[tuple[str, ...], ...]
    """Smallest sets that fail; no member can be left out. Empty when the whole set did not fail."""
    singles: tuple[tuple[str, Standing], ...]
    pairs: tuple[tuple[str, str, Standing], ...]
    runs: tuple[tuple[tuple[str, ...], bool], ...]
    """Every set that was run and whether it passed, in order."""
    contradictions: tuple[str, ...] = ()


def isolate(changes: Sequence[str], passes: Callable[[frozenset[str]], bool]) -> Isolation:
    """Find every smallest failing set that shares no member with one found before.

    Args:
        changes: names of what the failing launch has and the working one has not.
        passes: runs the launch with some of the changes; a set is run once.

    Raises:
        InputError: no changes, or the launch without any of them fails too.
    """
    names = tuple(dict.fromkeys(changes))
    if not names:
        raise InputError("the failing launch and the working one do not differ", "name a launch that works with --good")
    runs: dict[frozenset[str], bool] = {}

    def check(wanted: Iterable[str]) -> bool:
        key = frozenset(wanted)
        if key not in runs:
            runs[key] = passes(key)
        return runs[key]

    if not check(()):
        raise InputError(
            "the launch without any of the changes fails too", "the cause lies elsewhere: diagnose its log"
        )
    causes: list[tuple[str, ...]] = []
    left = list(names)
    while left and not check(left):
        cause = _smallest(left, check)
        causes.append(tuple(name for name in names if name in cause))
        left = [name for name in left if name not in cause]
    for name in names:
        # A verdict for each single change: those that no passing run has cleared are run alone.
        if not any(ok and name in known for known, ok in runs.items()):
            check((name,))
    for name in [name for name in names if runs.get(frozenset((name,))) is False and (name,) not in causes]:
        causes.append((name,))
    causes = [cause for cause in causes if not any(set(other) < set(cause) for other in causes)]
    return Isolation(
        causes=tuple(causes),
        singles=tuple((name, _standing((name,), causes, runs)) for name in names),
        pairs=tuple((a, b, _standing((a, b), causes, runs)) for a, b in combinations(names, 2)),
        runs=tuple((tuple(name for name in names if name in known), ok) for known, ok in runs.items()),
        contradictions=tuple(_contradictions(names, runs)),
    )


def _smallest(names: Sequence[str], check: Callable[[Iterable[str]], bool]) -> set[str]:
    """One failing subset of which no member can be left out (Zeller's ddmin with complements)."""
    current = list(names)
    parts = 2
    while len(current) > 1:
        size = max(1, len(current) // parts)
        groups = [current[start : start + size] for start in range(0, len(current), size)]
        failing = next((group for group in groups if len(group) < len(current) and not check(group)), None)
        if failing is not None:
            current, parts = failing, 2
            continue
        for group in groups:
            rest = [name for name in current if name not in group]
            if rest and len(rest) < len(current) and not check(rest):
                current, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(current), 2 * parts)
    return set(current)


def _standing(wanted: tuple[str, ...], causes: Sequence[tuple[str, ...]], runs: dict[frozenset[str], bool]) -> Standing:
    key = set(wanted)
    if any(set(cause) <= key for cause in causes):
        return Standing.GUILTY
    if any(ok and key <= known for known, ok in runs.items()):
        return Standing.INNOCENT if not any(key & set(cause) for cause in causes) else Standing.PART
    if any(key <= set(cause) for cause in causes):
        return Standing.PART
    return Standing.NOT_NEEDED


def _contradictions(names: Sequence[str], runs: dict[frozenset[str], bool]) -> Iterable[str]:
    """Pairs of runs in which adding a change mended a failure."""
    for small, small_ok in runs.items():
        for large, large_ok in runs.items():
            if small < large and not small_ok and large_ok:
                shown = [", ".join(name for name in names if name in known) or "none" for known in (small, large)]
                yield f"fails with {shown[0]}, passes with {shown[1]}"
