"""Path products of draft trees: what each further node of a tree adds to the expected accept length.

Depth d of a block has rank probabilities ``p[d, 0] >= p[d, 1] >= ...``. A node is a path of ranks; the probability
that it is accepted is the product along the path. The expected accept length of a tree is 1 (the bonus token) plus
the sum over its nodes, and the best tree of B nodes holds the B largest products, which are closed under taking
prefixes (Ringel & Romano, arXiv:2604.12989, propositions 1 and 2). All functions work on many rounds (rows) at once.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["beam_gains", "best_first_gains", "chain_gains", "spine_gains"]

FloatArray = NDArray[np.float32]


@lru_cache(maxsize=64)
def _candidates(n_parents: int, n_ranks: int, n_nodes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs (parent, rank) that can be among the ``n_nodes`` best of one depth: (parent + 1) * (rank + 1) <= n_nodes.

    Parents and ranks are sorted, so the pair (i, k) is beaten by every pair of the rectangle above it.
    """
    parents, ranks = [], []
    for rank in range(min(n_ranks, n_nodes)):
        n = min(n_parents, n_nodes // (rank + 1))
        parents.append(np.arange(n))
        ranks.append(np.full(n, rank))
    return np.concatenate(parents), np.concatenate(ranks)


def _largest(values: FloatArray, n: int) -> FloatArray:
    """The ``n`` largest of each row, sorted downwards (fewer where the row is shorter)."""
    if values.shape[1] > n:
        values = -np.partition(-values, n - 1, axis=1)[:, :n]
    return np.asarray(-np.sort(-values, axis=1), dtype=np.float32)


def _pad(values: FloatArray, n: int) -> FloatArray:
    """Rows filled with zeros up to ``n`` columns: a tree cannot have more nodes than there are paths."""
    return np.pad(values, ((0, 0), (0, n - values.shape[1]))) if values.shape[1] < n else values


def best_first_gains(rank_probs: NDArray[np.floating], n_nodes: int) -> FloatArray:
    """Products of the ``n_nodes`` most probable paths, largest first.

    Args:
        rank_probs: (rows, depths, ranks), sorted downwards along ranks.
        n_nodes: how many.

    Returns:
        (rows, n_nodes); entry n - 1 is what the n-th node adds.
    """
    probs = np.asarray(rank_probs, dtype=np.float32)
    level = np.ones((probs.shape[0], 1), dtype=np.float32)
    best = np.zeros((probs.shape[0], 0), dtype=np.float32)
    for depth in range(probs.shape[1]):
        parent, rank = _candidates(level.shape[1], probs.shape[2], n_nodes)
        level = _largest(level[:, parent] * probs[:, depth, :][:, rank], n_nodes)
        best = np.concatenate([best, level], axis=1)
        if best.shape[1] > 4 * n_nodes:
            best = _largest(best, n_nodes)
    return _pad(_largest(best, n_nodes), n_nodes)


def chain_gains(rank_probs: NDArray[np.floating]) -> FloatArray:
    """Products along the rank-1 path, (rows, depths): the tree with one alternate per depth."""
    return np.cumprod(np.asarray(rank_probs, dtype=np.float32)[:, :, 0], axis=1)


def spine_gains(rank_probs: NDArray[np.floating], n_nodes: int) -> FloatArray:
    """As :func:`best_first_gains` for builders that put the whole rank-1 chain first, in the order of insertion.

    The first ``depths`` entries are the chain, so the row is not sorted: a chain node that best-first would leave out
    costs a place. From there on the most probable of the other paths follow (their parents are in the tree already).
    """
    probs = np.asarray(rank_probs, dtype=np.float32)
    chain = chain_gains(probs)
    off = np.zeros((probs.shape[0], 0), dtype=np.float32)
    best = off
    above = np.ones((probs.shape[0], 1), dtype=np.float32)
    for depth in range(probs.shape[1]):
        parts = [above * probs[:, depth, 1:]]
        if off.shape[1]:
            parent, rank = _candidates(off.shape[1], probs.shape[2], n_nodes)
            parts.append(off[:, parent] * probs[:, depth, :][:, rank])
        off = _largest(np.concatenate(parts, axis=1), n_nodes)
        best = _largest(np.concatenate([best, off], axis=1), n_nodes)
        above = chain[:, depth : depth + 1]
    return _pad(np.concatenate([chain, best], axis=1), n_nodes)[:, :n_nodes]


def beam_gains(rank_probs: NDArray[np.floating], n_nodes: int, *, width: int) -> FloatArray:
    """As :func:`best_first_gains` for EAGLE-style trees: ``width`` nodes of each depth are expanded by ``width`` ranks.

    All expanded candidates are then ranked together and the best ``n_nodes`` kept, as EAGLE-2 does.
    """
    probs = np.asarray(rank_probs, dtype=np.float32)[:, :, :width]
    beam = np.ones((probs.shape[0], 1), dtype=np.float32)
    best = np.zeros((probs.shape[0], 0), dtype=np.float32)
    for depth in range(probs.shape[1]):
        layer = (beam[:, :, None] * probs[:, depth, None, :]).reshape(probs.shape[0], -1)
        beam = _largest(layer, width)
        best = _largest(np.concatenate([best, layer], axis=1), n_nodes)
    return _pad(best, n_nodes)
