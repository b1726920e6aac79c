"""A draft tree from the marginals of one round, as DDTree builds it (arXiv:2604.12989, algorithm 1).

The budget excludes the root. Trees of growing budget are nested, so one tree holds all smaller ones.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.errors import InputError, Problem

__all__ = ["DraftTree", "best_first_tree"]


@dataclass(frozen=True, slots=True, eq=False)
class DraftTree:
    """Nodes in the order of insertion, root left out; all arrays (n_nodes,)."""

    parent: NDArray[np.int64]
    """Index of the parent node, -1 for children of the root."""
    depth: NDArray[np.int64]
    """1 for children of the root."""
    rank: NDArray[np.int64]
    """Rank of the node's token among the alternates of its depth, 0 is the drafter's first choice."""
    path_prob: NDArray[np.float64]
    """Product of the marginals along the path."""

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def accept_len(self) -> float:
        """Expected accept length under the marginals, bonus token included."""
        return 1.0 + float(self.path_prob.sum())


def best_first_tree(
    marginals: ArrayLike, budget: int, *, topk: int | None = None, spine_guarantee: bool = False
) -> DraftTree:
    """The ``budget`` most probable paths of one round.

    Args:
        marginals: (depths, ranks), probabilities of the alternates of each depth, largest first.
        budget: nodes without the root. Fewer come back when there are fewer paths of positive probability.
        topk: alternates per depth that may be used; None: all.
        spine_guarantee: put the whole first-choice chain in before anything else, as some ports do.

    Raises:
        InputError: marginals that are not probabilities sorted downwards, or a budget or topk below 1.
    """
    probs = np.asarray(marginals, dtype=float)
    problems = []
    if probs.ndim != 2 or probs.size == 0:
        problems.append(Problem("marginals have shape (depths, ranks)", field="marginals", value=probs.shape))
    elif not np.all(np.isfinite(probs)) or probs.min() < 0 or probs.sum(axis=1).max() > 1 + 1e-6:
        problems.append(Problem("each depth holds probabilities that sum to at most 1", field="marginals"))
    elif np.any(np.diff(probs, axis=1) > 1e-12):
        problems.append(Problem("alternates are sorted by probability, largest first", field="marginals"))
    for name, value in (("budget", budget), ("topk", topk)):
        if value is not None and value < 1:
            problems.append(Problem("must be at least 1", field=name, value=value))
    if problems:
        raise InputError(problems)
    n_depths, n_ranks = probs.shape
    n_ranks = min(n_ranks, topk or n_ranks)

    parent: list[int] = []
    depth: list[int] = []
    rank: list[int] = []
    path: list[float] = []
    heap: list[tuple[float, int, int, int, int]] = []
    order = 0

    def push(at: int, level: int, choice: int, above: float) -> None:
        nonlocal order
        if level < n_depths and choice < n_ranks and above * probs[level, choice] > 0:
            heapq.heappush(heap, (-above * probs[level, choice], order, at, level, choice))
            order += 1

    def add(at: int, level: int, choice: int, prob: float) -> int:
        parent.append(at)
        depth.append(level + 1)
        rank.append(choice)
        path.append(prob)
        return len(parent) - 1

    above, at = 1.0, -1
    if spine_guarantee:
        for level in range(min(n_depths, budget)):
            push(at, level, 1, above)
            above *= probs[level, 0]
            at = add(at, level, 0, above)
        push(at, min(n_depths, budget), 0, above)
    else:
        push(-1, 0, 0, 1.0)
    while heap and len(parent) < budget:
        negative, _, at, level, choice = heapq.heappop(heap)
        node = add(at, level, choice, -negative)
        push(at, level, choice + 1, -negative / probs[level, choice])
        push(node, level + 1, 0, -negative)
    return DraftTree(np.array(parent), np.array(depth), np.array(rank), np.array(path))
