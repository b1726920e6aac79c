"""The smallest change that clears every fault: exact search over candidate edits, nothing summed up.

Faults interact: one edit may clear several, or bring a new one. So edits are tried in order of total cost (uniform-cost
search), every state is judged anew, and the first state without a fault is a cheapest one among all combinations of
candidates met on the way. Equal costs are broken by the order in which candidates are offered, so the answer is stable.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Repair", "Step", "smallest_repair"]

S = TypeVar("S", bound=Hashable)
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Step(Generic[S, E]):
    """A candidate edit in a state: its cost, what it is, and the state it leads to."""

    cost: int
    edit: E
    state: S


@dataclass(frozen=True, slots=True)
class Repair(Generic[S, E]):
    """Outcome of a search. ``complete`` is False when candidates ran out; ``state`` then is the best that was reached:
    fewest faults, then cheapest."""

    state: S
    edits: tuple[E, ...]
    cost: int
    n_faults: int
    complete: bool
    n_states: int
    exhausted: bool
    """False when the search ended at ``max_states``: a cheaper repair may exist."""


def smallest_repair(
    start: S,
    *,
    n_faults: Callable[[S], int],
    candidates: Callable[[S], Iterable[Step[S, E]]],
    max_states: int = 400,
) -> Repair[S, E]:
    """Searches for a state without faults at the least total cost.

    Args:
        start: the state to repair.
        n_faults: faults that the edits are meant to clear.
        candidates: edits offered in a state; costs are positive.
        max_states: states judged at most.
    """
    order = 0
    heap: list[tuple[int, int, S, tuple[E, ...]]] = [(0, order, start, ())]
    done: set[S] = set()
    best: tuple[int, int, S, tuple[E, ...]] | None = None
    while heap and len(done) < max_states:
        cost, _, state, edits = heapq.heappop(heap)
        if state in done:
            continue
        done.add(state)
        faults = n_faults(state)
        if best is None or (faults, cost) < (best[0], best[1]):
            best = (faults, cost, state, edits)
        if faults == 0:
            return Repair(state, edits, cost, 0, True, len(done), True)
        for step in candidates(state):
            if step.state not in done:
                order += 1
                heapq.heappush(heap, (cost + step.cost, order, step.state, (*edits, step.edit)))
    assert best is not None
    faults, cost, state, edits = best
    return Repair(state, edits, cost, faults, False, len(done), not heap)
