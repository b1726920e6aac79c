"""Optimal tree for given positional acceptance: Sequoia's dynamic programme (arXiv:2402.12374), as a comparison.

It takes one acceptance probability per rank (or per depth and rank) for all rounds, so its tree is the same in each
round. Real trees adapt to the round: on rounds of mixed ease a static tree built from the mean marginals comes out 10
to 20 % low at budgets of 4 to 64 (docs/acceptance.md), which is why plans do not use it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.errors import InputError, Problem

__all__ = ["StaticTree", "optimal_static_tree"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StaticTree:
    """Best tree of a budget under positional acceptance."""

    accept_len: float
    """Expected accept length, bonus token included."""
    children: tuple[tuple[int, int, int], ...]
    """Nodes as (parent, depth, rank): parent -1 is the root, depth from 1, rank from 0. Parents come first."""


def _split(per_rank: FloatArray, below: FloatArray, n: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Best value of ``m`` nodes shared among the children from each rank on, and the nodes given to that child.

    Args:
        per_rank: acceptance of each child, (ranks,).
        below: value of a subtree of m nodes (its root counted), (n + 1,); entry 0 is 0.
        n: most nodes.

    Returns:
        value (ranks + 1, n + 1) and given (ranks, n + 1).
    """
    ranks = len(per_rank)
    value = np.zeros((ranks + 1, n + 1))
    given = np.zeros((ranks, n + 1), dtype=np.int64)
    for k in range(ranks - 1, -1, -1):
        for m in range(1, n + 1):
            total = per_rank[k] * below[: m + 1] + value[k + 1, m::-1]
            given[k, m] = int(np.argmax(total))
            value[k, m] = total[given[k, m]]
    return value, given


def optimal_static_tree(rank_accept: ArrayLike, budget: int, *, max_depth: int) -> StaticTree:
    """Best static tree of ``budget`` nodes (root excluded) and at most ``max_depth`` levels.

    Args:
        rank_accept: probability that the child of each rank is the accepted one, (ranks,) or (depths, ranks).
        budget: nodes without the root.
        max_depth: longest path.

    Raises:
        InputError: probabilities outside [0, 1] or summing above 1, budget or depth below 1.
    """
    probs = np.asarray(rank_accept, dtype=float)
    problems = []
    if probs.ndim == 1:
        probs = np.broadcast_to(probs, (max(max_depth, 1), probs.size))
    if probs.ndim != 2 or probs.size == 0 or (probs.shape[0] < max_depth):
        problems.append(Problem("shape is (ranks,) or (depths, ranks) with max_depth rows", field="rank_accept"))
    elif not np.all(np.isfinite(probs)) or probs.min() < 0 or probs.sum(axis=1).max() > 1 + 1e-6:
        problems.append(Problem("acceptance by rank is between 0 and 1 and sums to at most 1", field="rank_accept"))
    for name, number in (("budget", budget), ("max_depth", max_depth)):
        if number < 1:
            problems.append(Problem("must be at least 1", field=name, value=number))
    if problems:
        raise InputError(problems)

    below = np.concatenate([[0.0], np.ones(budget)])
    choices: list[NDArray[np.int64]] = []
    value = np.zeros((1, budget + 1))
    for level in range(max_depth - 1, -1, -1):
        value, given = _split(probs[level], below, budget)
        choices.append(given)
        below = np.concatenate([[0.0], 1.0 + value[0, :budget]])
    choices.reverse()

    nodes: list[tuple[int, int, int]] = []
    open_trees = [(-1, 0, budget)]
    while open_trees:
        parent, level, left = open_trees.pop()
        if level == max_depth:
            continue
        for rank in range(probs.shape[1]):
            size = int(choices[level][rank, left])
            if size:
                nodes.append((parent, level + 1, rank))
                open_trees.append((len(nodes) - 1, level + 1, size - 1))
            left -= size
    return StaticTree(1.0 + float(value[0, budget]), tuple(nodes))
