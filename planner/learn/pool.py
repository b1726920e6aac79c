"""The pool of a sweep: candidates of a search with joint draws, or a list of command lines without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.domain import Candidate, Launch
from planner.learn.flags import knobs_between
from planner.learn.order import FLAT_SPREAD_FRAC, Pool
from planner.learn.trial import Trial, knobs_of
from planner.search.cell import Cell
from planner.search.score import draw_tok_per_s
from planner.search.solve import Solved

__all__ = ["kind_of", "pool_of_launches", "pool_of_search", "trial_of"]

LOAD_MINUTES = 6.0
"""Loading 595 GB of weights (FN-19)."""
CAPTURE_MINUTES = 1.0
BENCH_MINUTES = 2.0


def kind_of(candidate: Candidate) -> str:
    """The path through the engine: failures carry over between candidates that share it."""
    return "/".join(
        str(part)
        for part in (
            candidate.tp_size,
            candidate.ep_size,
            candidate.attention_dp_size,
            candidate.attention_backend,
            candidate.cuda_graph,
            candidate.enable_nccl_nvls,
            candidate.allreduce_fusion,
            candidate.kv_cache_dtype,
        )
    )


def trial_of(candidate: Candidate, launch: Launch) -> Trial:
    """A candidate as a trial."""
    return Trial.of(launch.argv, env=launch.env, knobs=knobs_of(candidate), candidate=candidate)


def pool_of_search(
    solved: Solved, emit: Callable[[Candidate], Sequence[Launch]], *, most: int = 200, keep_frac: float = 0.5
) -> Pool:
    """The allowed candidates of a search with the highest rates, one cell for each core row.

    Args:
        solved: the finished search; what its limits forbid is not in the pool.
        emit: candidate to launches; candidates with more than one replica are left out (one server is one trial).
        most: trials in the pool.
        keep_frac: candidates below this share of the best rate are left out.
    """
    rank = solved.rank
    allowed = solved.allowed & (solved.table.replicas == 1)[:, None, None]
    rows = [int(row) for row in np.argsort(-rank, kind="stable") if allowed[row].any()]
    if rows:
        rows = _without_twins(solved, [row for row in rows if rank[row] >= keep_frac * rank[rows[0]]])[:most]
    cells: list[Cell] = []
    for row in rows:
        only = np.zeros_like(solved.allowed)
        only[row] = allowed[row]
        cell = solved.pick(only)
        if cell is not None:
            cells.append(cell)
    candidates = [solved.candidate(cell) for cell in cells]
    trials = tuple(trial_of(candidate, emit(candidate)[0]) for candidate in candidates)
    index = np.array([cell.row for cell in cells], dtype=np.int64)
    draws = (
        draw_tok_per_s(solved.request.models, solved.table, solved.scores, index).tok_per_s
        if cells
        else np.empty((1, 0))
    )
    return Pool(
        trials=trials,
        draws=draws,
        minutes=np.array(
            [LOAD_MINUTES + BENCH_MINUTES + (CAPTURE_MINUTES if one.cuda_graph else 0.0) for one in candidates]
        ),
        demands=np.array([demands_of(candidate) for candidate in candidates]).reshape(len(candidates), 2),
        kinds=tuple(kind_of(candidate) for candidate in candidates),
    )


def _without_twins(solved: Solved, rows: Sequence[int]) -> list[int]:
    """Of rows that differ in the width of the tree alone, one: that of the best row's width, or the best. Widths of one
    budget are too close to tell apart, and a width that travels with a budget is two changes at once."""
    table = solved.table
    names = ("tp_size", "ep_size", "attention_dp_size", "speculation", "budget", "cuda_graph", "enable_nccl_nvls",
             "allreduce_fusion", "attention_backend", "kv_cache_dtype")  # fmt: skip
    columns = [getattr(table, name) for name in names]
    widths = [int(table.topk[row]) for row in rows if table.speculation[row] == 2]
    kept: dict[tuple[int, ...], int] = {}
    for row in sorted(rows, key=lambda row: bool(widths) and int(table.topk[row]) != widths[0]):
        kept.setdefault(tuple(int(column[row]) for column in columns), row)
    return sorted(kept.values(), key=rows.index)


def demands_of(candidate: Candidate) -> tuple[float, float]:
    """What a candidate asks of the machine: verify rows and q_len."""
    return float(candidate.verify_rows_per_rank), float(candidate.q_len)


def pool_of_launches(launches: Sequence[Launch], *, minutes: float) -> Pool:
    """Command lines that someone lists, without a model: every trial is as good as another until it is measured.

    The knobs are the flags and variables in which the command lines differ.
    """
    unique: dict[str, Trial] = {}
    for launch, knobs in zip(launches, knobs_between(launches), strict=True):
        trial = Trial.of(launch.argv, env=launch.env, knobs=knobs)
        unique.setdefault(trial.id, trial)
    trials = tuple(unique.values())
    rng = np.random.default_rng(0)
    draws = np.exp(FLAT_SPREAD_FRAC * rng.standard_normal((400, len(trials))))
    return Pool(
        trials=trials,
        draws=draws,
        minutes=np.full(len(trials), minutes),
        demands=np.full((len(trials), 1), np.nan),
        kinds=tuple(trial.id for trial in trials),
    )
