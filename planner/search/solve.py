"""One search: space, scores and constraints for a request, and the allowed cells in order of preference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.domain import Candidate, Limit, Need, Workload
from planner.domain.table import CandidateTable
from planner.engine.dialects import Dialect
from planner.engine.version import EngineVersion
from planner.limits import LimitContext, holds_in_plan
from planner.search.choose import Cell, choose, distance_to_measured
from planner.search.masks import (
    Constraint,
    Constraints,
    MemoryColumns,
    limit_constraint,
    memory_columns,
    memory_constraints,
)
from planner.search.score import Models, Scores, quantile_tok_per_s, score
from planner.search.space import Pins, build_space

__all__ = ["Request", "Solved", "Target", "solve"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

CHUNKED_PREFILL_TOK = 8192
"""Prefill chunk of every planned launch: SGLang's default up to 160 GB, half of it above (sglang.md rule 41)."""


@dataclass(frozen=True, slots=True)
class Target:
    """The build that a plan is for."""

    dialect: Dialect
    version: EngineVersion


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Everything a search depends on, loaded and checked."""

    models: Models
    n_gpus: int
    target: Target
    limits: tuple[Limit, ...]
    lifts: Mapping[str, str]
    """Limit id -> reason."""
    risk: str
    pins: Pins
    context_length_tok: int
    measured: tuple[Candidate, ...]
    """Settings of runs that went well on this hardware and model."""
    robust_frac: float | None = None
    """Quantile of tok/s to maximise; None: the median of the models."""

    @property
    def workload(self) -> Workload:
        return self.models.workload


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A search with everything the explanation needs. ``cells`` is empty when nothing is allowed."""

    request: Request
    table: CandidateTable
    scores: Scores
    constraints: Constraints
    memory: MemoryColumns
    allowed: Bools
    """``(n, m, k)``."""
    rank: Floats
    """What candidates are ordered by, ``(n,)``: median tok/s, or the quantile asked for with ``--robust``."""
    cells: tuple[Cell, ...]
    """The tied candidates, the choice first."""
    n_candidates: int
    floor_requests: int
    fraction_default: float

    def without(self, *ids: str) -> tuple[Cell, ...]:
        """The tied candidates when the named constraints are left out."""
        return self.pick(self.constraints.mask(without=ids))

    def pick(self, allowed: Bools) -> tuple[Cell, ...]:
        """The tied candidates among other allowed cells."""
        distance = distance_to_measured(self.table, self.request.measured)
        return tuple(
            choose(
                self.table,
                self.rank,
                allowed,
                distance,
                floor_requests=self.floor_requests,
                fraction_default=self.fraction_default,
            )
        )

    def candidate(self, cell: Cell) -> Candidate:
        """A cell as a value, for the build of the request."""
        target = self.request.target
        return self.table.candidate(
            cell.row, cell.size, cell.fraction, dialect=target.dialect.id, engine_version=target.version.release
        )


def solve(request: Request) -> Solved:
    """Score the whole space and order what is allowed.

    With queueing allowed, fewer requests than clients may run: each such number is searched in turn, and the one with
    the best throughput wins; running all clients wins a tie.
    """
    whole = _solve_running(request, request.workload.target_c)
    if not request.workload.allow_queue or request.pins.max_running_requests is not None:
        return whole
    best, best_rate, total = whole, _best_rate(whole), whole.n_candidates
    for running in sorted(_queue_levels(request), reverse=True):
        limited = _solve_running(request, running)
        total += limited.n_candidates
        if (rate := _best_rate(limited)) > 1.05 * best_rate:
            best, best_rate = limited, rate
    return replace(best, n_candidates=total)


def _best_rate(solved: Solved) -> float:
    return float(solved.rank[[cell.row for cell in solved.cells]].max()) if solved.cells else 0.0


def _queue_levels(request: Request) -> list[int]:
    from planner.search.space import SIZE_LADDER

    return [level for level in (1, 2, 4, *SIZE_LADDER) if level < request.workload.target_c]


def _solve_running(request: Request, n_running: int) -> Solved:
    models = request.models
    hardware, model, drafter, workload = models.hardware, models.model, models.drafter, models.workload
    sized = workload.replace(target_c=n_running)
    table = build_space(
        hardware, model, drafter, sized, n_gpus=request.n_gpus, pins=request.pins, dialect=request.target.dialect
    )
    shape = (len(table), len(table.sizes), len(table.mem_fraction_static))
    scores = score(table, models, n_running=float(n_running))
    memory = memory_columns(
        table,
        hardware,
        model,
        drafter,
        workload,
        n_running=float(n_running),
        context_length_tok=request.context_length_tok,
        chunked_prefill_tok=float(CHUNKED_PREFILL_TOK),
    )
    items = memory_constraints(memory, table, hardware, workload)
    items += _engine_constraints(request, table)
    context = LimitContext(
        hardware,
        model,
        workload,
        block_size=drafter.block_size if drafter is not None else None,
        accept_len=scores.accept.value,
    )
    items += [
        limit_constraint(limit, table, context, risk=request.risk)
        for limit in request.limits
        if limit.id not in request.lifts and holds_in_plan(limit, request.target.version.release)
    ]
    items += _request_constraints(request, table, scores, n_running)
    constraints = Constraints(tuple(items), shape)
    solved = Solved(
        request=request,
        table=table,
        scores=scores,
        constraints=constraints,
        memory=memory,
        allowed=constraints.mask(),
        rank=scores.tok_per_s,
        cells=(),
        n_candidates=table.n_candidates,
        floor_requests=max(8, n_running),
        fraction_default=_engine_fraction(hardware.memory_bytes, table),
    )
    if request.robust_frac is not None:
        solved = replace(solved, rank=_quantile_rank(solved, request.robust_frac))
    return replace(solved, cells=solved.pick(solved.allowed))


def _quantile_rank(solved: Solved, quantile_frac: float) -> Floats:
    """The quantile of tok/s for rows whose median is at least half of the best allowed one; the rest scaled below them.

    A row at less than half the median can only have the better quantile if its interval is an order narrower; no part
    of the models is.
    """
    rate = solved.scores.tok_per_s
    open_rows = np.asarray(solved.allowed.any(axis=(1, 2)))
    floor = 0.5 * float(rate[open_rows].max()) if open_rows.any() else 0.0
    rows = np.flatnonzero(rate >= floor)
    rank = np.array(rate)
    if rows.size:
        drawn = quantile_tok_per_s(solved.request.models, solved.table, solved.scores, rows, quantile_frac)
        scale = float(np.median(drawn / rate[rows]))
        rank *= min(scale, 1.0)
        rank[rows] = drawn
    return rank


def _engine_fraction(memory_bytes: int, table: CandidateTable) -> float:
    """SGLang's own default for this memory (0.5.23 srt/arg_groups/memory_hook.py:276-350), without its floor."""
    memory_mb = memory_bytes / 2**20
    reserved_mb = 512 + 1.5 * CHUNKED_PREFILL_TOK + 1024 * float(table.tp_size.max()) / 8 + 2 * 512
    return round((memory_mb - max(reserved_mb, 10 * 1024)) / memory_mb, 3)


def _engine_constraints(request: Request, table: CandidateTable) -> list[Constraint]:
    """What the build named can run at all."""
    dialect, needs = request.target.dialect, request.workload.needs
    tree = (table.speculation == 2)[:, None, None]
    items = []
    refused = sorted(need.value for need in needs & dialect.refuses)
    if refused:
        items.append(
            Constraint(
                id="ENGINE-NEEDS",
                kind="engine",
                text=f"trees of {dialect.id} refuse {' and '.join(refused)}",
                allowed=~tree,
                relax=f"drop --needs {','.join(refused)}",
            )
        )
    if dialect.cuda_graphs is False:
        items.append(
            Constraint(
                id="ENGINE-TREE-GRAPHS",
                kind="engine",
                text=f"trees of {dialect.id} run without CUDA graphs",
                allowed=~(tree & table.cuda_graph[:, None, None]),
                relax="another --dialect",
            )
        )
    if dialect.greedy_only and request.workload.temperature > 0:
        items.append(
            Constraint(
                id="ENGINE-GREEDY",
                kind="engine",
                text=f"trees of {dialect.id} are greedy only",
                allowed=~tree,
                relax="--temperature 0",
            )
        )
    return items


def _request_constraints(request: Request, table: CandidateTable, scores: Scores, n_running: int) -> list[Constraint]:
    workload = request.workload
    ranks = table.attention_dp_size[:, None]
    served = table.sizes.max_running_requests[None, :] // ranks * ranks * table.replicas[:, None]
    on_replica = np.ceil(n_running / np.minimum(table.replicas, n_running))
    on_rank = np.ceil(on_replica / table.attention_dp_size)
    covered = ~table.cuda_graph[:, None] | (table.cuda_graph_max_bs >= on_rank[:, None])
    queue = "" if workload.allow_queue else ", or --allow-queue"
    items = [
        Constraint(
            id="REQUEST-TARGET-C",
            kind="request",
            text=f"{n_running} requests run at a time",
            allowed=(served >= n_running)[:, :, None],
            relax=f"a smaller --target-c{queue}",
        ),
        Constraint(
            id="GRAPHS-COVER-BATCH",
            kind="engine",
            text="captured batches cover what runs (a larger batch would run eager, outside every limit's evidence)",
            allowed=covered[:, :, None],
            relax="a smaller --target-c",
        ),
    ]
    if workload.max_tpot_s is not None:
        items.append(
            Constraint(
                id="REQUEST-MAX-TPOT",
                kind="request",
                text=f"TPOT at most {workload.max_tpot_s * 1e3:g} ms",
                allowed=(scores.tpot_s <= workload.max_tpot_s)[:, None, None],
                relax="a higher --max-tpot-ms, or fewer clients",
            )
        )
    if workload.min_tok_per_s_per_user is not None:
        rate = scores.tok_per_s / n_running
        items.append(
            Constraint(
                id="REQUEST-MIN-TOK-PER-USER",
                kind="request",
                text=f"at least {workload.min_tok_per_s_per_user:g} tok/s for each user",
                allowed=(rate >= workload.min_tok_per_s_per_user)[:, None, None],
                relax="a lower --min-tok-per-user, or fewer clients",
            )
        )
    return items


def needs_text(needs: frozenset[Need]) -> str:
    """``grammar, logprobs`` or ``none``."""
    return ", ".join(sorted(need.value for need in needs)) or "none"
