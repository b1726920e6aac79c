"""The choice: exact over the whole space, ties in a fixed order, and the smallest conflict when nothing is left."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.domain import Candidate
from planner.domain.table import SPECULATION_BY_CODE, CandidateTable
from planner.search.cell import Cell
from planner.search.masks import Constraints

__all__ = [
    "TIE_FRAC",
    "Cell",
    "best_row",
    "choose",
    "distance_to_measured",
    "smallest_conflict",
    "tied_rows",
]

TIE_FRAC = 0.05
"""Candidates within this share of the best are a tie: the models cannot tell them apart."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@lru_cache(maxsize=8)
def distance_to_measured(table: CandidateTable, measured: tuple[Candidate, ...]) -> Floats:
    """How far each core row is from the nearest measured run, ``(n,)``; 0 is a run's own settings.

    One for each setting that differs (layout, speculation, graphs, NVLS, fusion, attention backend, KV dtype), a half
    for topk, and the binary logarithm of the ratio of q_len. Infinite when nothing was measured.
    """
    if not measured:
        return np.full(len(table), np.inf)
    nearest = np.full(len(table), np.inf)
    backends = np.array(table.backends)[table.attention_backend]
    dtypes = np.array(table.kv_dtypes)[table.kv_cache_dtype]
    for run in measured:
        apart = (
            (table.tp_size != run.tp_size).astype(np.float64)
            + (table.ep_size != run.ep_size)
            + (table.attention_dp_size != run.attention_dp_size)
            + (table.replicas != run.replicas)
            + (table.speculation != SPECULATION_BY_CODE.index(run.speculation))
            + (table.cuda_graph != run.cuda_graph)
            + (table.enable_nccl_nvls != run.enable_nccl_nvls)
            + (table.allreduce_fusion != run.allreduce_fusion)
            + (backends != run.attention_backend)
            + (dtypes != run.kv_cache_dtype)
            + 0.5 * (table.topk != run.topk)
            + np.abs(np.log2(table.q_len / run.q_len))
        )
        nearest = np.minimum(nearest, apart)
    nearest.setflags(write=False)
    return nearest


def best_row(tok_per_s: Floats, allowed: Bools) -> int | None:
    """Core row with the highest tok/s among those with an allowed cell; None when there is none. Ties: lowest index."""
    rows = allowed.any(axis=(1, 2))
    if not rows.any():
        return None
    return int(np.argmax(np.where(rows, tok_per_s, -np.inf)))


def tied_rows(tok_per_s: Floats, allowed: Bools) -> Ints:
    """Core rows within :data:`TIE_FRAC` of the best allowed one."""
    rows = np.flatnonzero(allowed.any(axis=(1, 2)))
    if rows.size:
        rate = tok_per_s[rows]
        rows = rows[rate >= (1.0 - TIE_FRAC) * rate.max()]
    return np.asarray(rows, dtype=np.int64)


def choose(
    table: CandidateTable,
    tok_per_s: Floats,
    allowed: Bools,
    distance: Floats,
    *,
    target_c: int,
    fraction_default: float,
) -> Cell | None:
    """The winner among the tied core rows, or None when nothing is allowed.

    Nearest to a measured point, then fewest verify rows, then the smallest max_running_requests that is at least its
    share of ``target_c`` and 8, then higher tok/s, the largest captured batch, the lowest index; and of its memory
    fractions the one nearest to the default.
    """
    rows = tied_rows(tok_per_s, allowed)
    if not rows.size:
        return None
    near = np.round(distance[rows], 9)
    rows = rows[near == near.min()]
    sizes = table.sizes
    open_row, open_size = np.nonzero(allowed[rows].any(axis=2))
    requests = sizes.max_running_requests[open_size]
    order = np.lexsort(
        (
            open_size,
            rows[open_row],
            -sizes.cuda_graph_max_bs_frac[open_size],
            -tok_per_s[rows[open_row]],
            requests,
            requests < np.maximum(8, np.ceil(target_c / table.replicas[rows[open_row]])),
            table.verify_rows[rows[open_row], open_size],
        )
    )
    row, size = int(rows[open_row[order[0]]]), int(open_size[order[0]])
    away = np.abs(table.mem_fraction_static - fraction_default)
    fraction = next(int(k) for k in np.argsort(away, kind="stable") if allowed[row, size, k])
    return Cell(row, size, fraction)


def smallest_conflict(constraints: Constraints) -> tuple[str, ...]:
    """A smallest set of constraints (no member can be left out) that together allow nothing.

    Deletion filter: each constraint in turn is dropped, and stays dropped when the rest still allows nothing. Requests
    are dropped last, so that the answer speaks of them when it can.

    Raises:
        ValueError: the constraints allow something.
    """
    kept = [item.id for item in constraints.items]
    if constraints.mask(only=kept).any():
        raise ValueError("the constraints can be met together")
    kinds = {"memory": 0, "engine": 1, "limit": 2, "request": 3}
    # Within a kind the later constraint is dropped first: weights that do not fit are named before the KV pool is.
    place = {item.id: index for index, item in enumerate(constraints.items)}
    order = sorted(constraints.items, key=lambda item: (kinds[item.kind], -place[item.id]))
    for item in order:
        rest = [id_ for id_ in kept if id_ != item.id]
        if not constraints.mask(only=rest).any():
            kept = rest
    return tuple(kept)
