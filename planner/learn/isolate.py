"""Which settings of a failing launch cause the failure: delta debugging over named changes.

``passes(set)`` runs the launch with only these changes made to a launch that works: True where it is right, False where
it fails as the whole does, None where it cannot say (the engine refuses the combination, or it fails in another way).
The search assumes that adding a change never mends a failure; where a run says otherwise, that is reported and not
averaged away.
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
    runs: tuple[tuple[tuple[str, ...], bool | None], ...]
    """Every set that was run, in order: passed, failed as the whole does, or None."""
    contradictions: tuple[str, ...] = ()


def isolate(changes: Sequence[str], passes: Callable[[frozenset[str]], bool | None]) -> Isolation:
    """Find every smallest failing set that shares no member with one found before.

    Args:
        changes: names of what the failing launch has and the working one has not.
        passes: runs the launch with some of the changes; a set is run once. A member of a set that cannot say is
            neither cleared nor blamed.

    Raises:
        InputError: no changes, or the launch without any of them fails too.
    """
    names = tuple(dict.fromkeys(changes))
    if not names:
        raise InputError("the failing launch and the working one do not differ", "name a launch that works with --good")
    runs: dict[frozenset[str], bool | None] = {}

    def fails(wanted: Iterable[str]) -> bool:
        key = frozenset(wanted)
        if key not in runs:
            runs[key] = passes(key)
        return runs[key] is False

    if fails(()) or runs[frozenset()] is None:
        raise InputError(
            "the launch without any of the changes fails too", "the cause lies elsewhere: diagnose its log"
        )
    causes: list[tuple[str, ...]] = []
    left = list(names)
    while left and fails(left):
        cause = _smallest(left, fails)
        causes.append(tuple(name for name in names if name in cause))
        left = [name for name in left if name not in cause]
    for name in names:
        # A verdict for each single change: those that no passing run has cleared are run alone.
        if not any(ok and name in known for known, ok in runs.items()):
            fails((name,))
    for name in [name for name in names if runs.get(frozenset((name,))) is False and (name,) not in causes]:
        causes.append((name,))
    for group in _pairs_to_clear(names, causes):
        # A verdict for each pair: a part of one cause may fail with another setting as well.
        if not any(ok and group <= known for known, ok in runs.items()) and fails(group):
            smallest = _smallest([name for name in names if name in group], fails)
            causes.append(tuple(name for name in names if name in smallest))
    causes = [cause for cause in dict.fromkeys(causes) if not any(set(other) < set(cause) for other in causes)]
    return Isolation(
        causes=tuple(causes),
        singles=tuple((name, _standing((name,), causes, runs)) for name in names),
        pairs=tuple((a, b, _standing((a, b), causes, runs)) for a, b in combinations(names, 2)),
        runs=tuple((tuple(name for name in names if name in known), ok) for known, ok in runs.items()),
        contradictions=tuple(_contradictions(names, runs)),
    )


def _pairs_to_clear(names: Sequence[str], causes: Sequence[tuple[str, ...]]) -> list[frozenset[str]]:
    """Sets whose good runs clear every pair that is not inside a cause: each part of a cause with all that is in none,
    and the parts of two causes together. Settings that fail alone are left out."""
    blamed = {name for cause in causes for name in cause}
    parts = [cause for cause in causes if len(cause) > 1]
    rest = frozenset(name for name in names if name not in blamed)
    groups = [rest | {name} for cause in parts for name in cause if rest]
    groups += [frozenset((a, b)) for one, other in combinations(parts, 2) for a in one for b in other if a != b]
    return [group for group in dict.fromkeys(groups) if not any(set(cause) <= group for cause in causes)]


def _smallest(names: Sequence[str], fails: Callable[[Iterable[str]], bool]) -> set[str]:
    """One failing subset of which no member can be left out (Zeller's ddmin with complements)."""
    current = list(names)
    parts = 2
    while len(current) > 1:
        size = max(1, len(current) // parts)
        groups = [current[start : start + size] for start in range(0, len(current), size)]
        failing = next((group for group in groups if len(group) < len(current) and fails(group)), None)
        if failing is not None:
            current, parts = failing, 2
            continue
        for group in groups:
            rest = [name for name in current if name not in group]
            if rest and len(rest) < len(current) and fails(rest):
                current, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(current), 2 * parts)
    return set(current)


def _standing(
    wanted: tuple[str, ...], causes: Sequence[tuple[str, ...]], runs: dict[frozenset[str], bool | None]
) -> Standing:
    key = set(wanted)
    if any(set(cause) <= key for cause in causes):
        return Standing.GUILTY
    if any(ok and key <= known for known, ok in runs.items()):
        return Standing.INNOCENT if not any(key & set(cause) for cause in causes) else Standing.PART
    if any(key <= set(cause) for cause in causes):
        return Standing.PART
    return Standing.NOT_NEEDED


def _contradictions(names: Sequence[str], runs: dict[frozenset[str], bool | None]) -> Iterable[str]:
    """Pairs of runs in which adding a change mended a failure."""
    for small, small_ok in runs.items():
        for large, large_ok in runs.items():
            if small < large and small_ok is False and large_ok:
                shown = [", ".join(name for name in names if name in known) or "none" for known in (small, large)]
                yield f"fails with {shown[0]}, passes with {shown[1]}"
