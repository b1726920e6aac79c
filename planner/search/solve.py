"""One search: space, scores and constraints for a request, and the choice among what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import Candidate, DrafterProfile, Limit, Workload
from planner.domain.table import CandidateTable
from planner.engine.dialects import Dialect
from planner.engine.emit import prefix_cache_unsafe
from planner.engine.version import EngineVersion
from planner.errors import InputError
from planner.estimate.step_cost.rows import known_overlap
from planner.limits import LimitContext, holds_in_plan
from planner.search.cell import Cell
from planner.search.choose import TIE_FRAC, best_row, choose, distance_to_measured
from planner.search.masks import (
    Constraint,
    Constraints,
    MemoryColumns,
    limit_constraint,
    memory_columns,
    memory_constraints,
)
from planner.search.score import Models, Overlap, Scores, quantile_tok_per_s, score
from planner.search.space import KV_DTYPES, SIZE_LADDER, TREE_ALGORITHMS, Pins, build_space
from planner.search.ttft import first_token

__all__ = ["CHUNKED_PREFILL_TOK", "Request", "Solved", "Target", "solve", "solve_builds"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

MEM_FRACTION = 0.85
"""Memory fraction that is preferred where it fits: SGLang's own defaults are 0.73 to 0.88 on the machines of the field
notes (0.5.12.post1 and 0.5.23)."""

CHUNKED_PREFILL_TOK = 8192
"""Prefill chunk of every planned launch: SGLang's default up to 160 GB, half of it above (sglang.md rule 41)."""


@record()
class Target:
    """The build that a plan is for."""

    dialect: Dialect
    version: EngineVersion

    @property
    def counts_draft_as_target(self) -> bool:
        """Whether the KV pool counts a block drafter's layers as the target's: up to 0.5.16, not in 0.5.23."""
        return not self.version.at_least("0.5.23")

    def overlap(self, drafter: DrafterProfile | None) -> Overlap:
        """Whether the overlap scheduler is on for a chain and for a tree of this build."""
        chain, tree = (known_overlap(self.version.stands_for, drafter, tree=tree) for tree in (False, True))
        return chain, tree


@record(eq=False)
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


@record(eq=False)
class Solved:
    """A search with everything the explanation needs. ``choice`` is None when nothing is allowed."""

    request: Request
    table: CandidateTable
    scores: Scores
    constraints: Constraints
    memory: MemoryColumns
    allowed: Bools
    """``(n, m, k)``."""
    rank: Floats
    """What candidates are ordered by, ``(n,)``: median tok/s, or the quantile asked for with ``--robust``."""
    n_candidates: int
    choice: Cell | None = None

    def pick(self, allowed: Bools, *, near: Candidate | None = None) -> Cell | None:
        """The best among other allowed cells; ties go to the nearest to ``near``, or to a measured run."""
        return choose(
            self.table,
            self.rank,
            allowed,
            distance_to_measured(self.table, self.request.measured if near is None else (near,)),
            target_c=int(self.scores.n_running),
            fraction_default=MEM_FRACTION,
        )

    def candidate(self, cell: Cell) -> Candidate:
        """A cell as a value, for the build of the request."""
        target = self.request.target
        return self.table.candidate(
            cell.row, cell.size, cell.fraction, dialect=target.dialect.id, engine_version=target.version.release
        )


def solve(request: Request) -> Solved:
    """The best allowed cell of the whole space.

    Raises:
        InputError: nothing that the build offers has the settings asked for.
    """
    return solve_builds((request,))[0]


def solve_builds(requests: Sequence[Request]) -> list[Solved]:
    """One search for each build that can have what is asked for, the same question in all.

    The KV cache is BF16 unless another dtype is asked for, and FP8 where no build has a launch with BF16 that meets
    limits and requests. With queueing allowed, fewer requests than clients may run: each such number is searched in
    turn, and one that beats running all clients by more than a tie wins.

    Raises:
        InputError: nothing that any build offers has the settings asked for; what the last one says.
    """
    pinned = requests[0].pins.kv_cache_dtype
    found = _each(requests, (pinned or "bf16",))
    if pinned is not None or any(one.choice is not None for one in found):
        return found
    return _each(requests, KV_DTYPES)


def _each(requests: Sequence[Request], kv_dtypes: tuple[str, ...]) -> list[Solved]:
    found, fault = [], None
    for request in requests:
        try:
            found.append(_solve_kv(request, kv_dtypes))
        except InputError as error:
            fault = error
    if not found and fault is not None:
        raise fault
    return found


def _solve_kv(request: Request, kv_dtypes: tuple[str, ...]) -> Solved:
    """The search with some KV dtypes."""
    whole = _solve_running(request, request.workload.target_c, kv_dtypes)
    if not request.workload.allow_queue:
        return whole
    best, best_rate, total = whole, _best_rate(whole), whole.n_candidates
    for running in (level for level in _levels(request) if level < request.workload.target_c):
        limited = _solve_running(request, running, kv_dtypes)
        total += limited.n_candidates
        if (rate := _best_rate(limited)) > best_rate / (1.0 - TIE_FRAC):
            best, best_rate = limited, rate
    return replace(best, n_candidates=total)


def _levels(request: Request) -> list[int]:
    """Numbers of requests that may run at a time while others wait, the largest first.

    A fixed ``max_running_requests`` leaves those that some layout makes of it: attention DP divides it among the ranks
    of a replica, and rounds down.
    """
    pinned = request.pins.max_running_requests
    if pinned is None:
        return sorted({1, 2, 4, *SIZE_LADDER}, reverse=True)
    parts = [count for count in range(1, request.n_gpus + 1) if request.n_gpus % count == 0]
    return sorted({pinned // ranks * ranks * replicas for ranks in parts for replicas in parts} - {0}, reverse=True)


def _best_rate(solved: Solved) -> float:
    row = best_row(solved.rank, solved.allowed)
    return float(solved.rank[row]) if row is not None else 0.0


def _solve_running(request: Request, n_running: int, kv_dtypes: tuple[str, ...]) -> Solved:
    models = request.models
    sized = request.workload.replace(target_c=n_running)
    table = build_space(
        models.hardware,
        models.model,
        models.drafter,
        sized,
        n_gpus=request.n_gpus,
        pins=request.pins,
        dialect=request.target.dialect,
        kv_dtypes=kv_dtypes,
        n_waiting=request.workload.target_c - n_running,
    )
    overlap = request.target.overlap(models.drafter)
    scores = score(table, models, n_running=float(n_running), overlap=overlap)
    memory = memory_columns(
        table,
        models.hardware,
        models.model,
        models.drafter,
        request.workload,
        n_running=float(n_running),
        context_length_tok=request.context_length_tok,
        chunked_prefill_tok=float(CHUNKED_PREFILL_TOK),
        draft_as_target=request.target.counts_draft_as_target,
    )
    return _finish(
        Solved(
            request=request,
            table=table,
            scores=scores,
            constraints=Constraints((), (1, 1, 1)),
            memory=memory,
            allowed=np.ones((1, 1, 1), dtype=bool),
            rank=scores.tok_per_s,
            n_candidates=table.n_candidates,
        )
    )


def _finish(solved: Solved) -> Solved:
    """Constraints, ranking and choice for what was scored."""
    request, table, scores = solved.request, solved.table, solved.scores
    drafter = request.models.drafter
    context = LimitContext(
        request.models.hardware,
        request.models.model,
        request.workload,
        block_size=drafter.block_size if drafter is not None else None,
        accept_len=scores.accept.value,
    )
    items = memory_constraints(solved.memory, table, request.models.hardware, request.workload)
    items += _engine_constraints(request, table)
    items += [
        limit_constraint(limit, table, context, risk=request.risk)
        for limit in request.limits
        if limit.id not in request.lifts and holds_in_plan(limit, request.target.version.release)
    ]
    items += _request_constraints(request, table, scores)
    shape = (len(table), len(table.sizes), len(table.mem_fraction_static))
    constraints = Constraints(tuple(items), shape)
    solved = replace(solved, constraints=constraints, allowed=constraints.mask(), rank=scores.tok_per_s)
    if request.robust_frac is not None:
        solved = replace(solved, rank=_quantile_rank(solved, request.robust_frac))
    return replace(solved, choice=solved.pick(solved.allowed))


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


def _engine_constraints(request: Request, table: CandidateTable) -> list[Constraint]:
    """What the build named can run at all."""
    dialect, needs = request.target.dialect, request.workload.needs
    tree = (table.speculation == 2)[:, None, None]
    items = []
    if not dialect.has_tree and bool(tree.any()) and request.models.drafter is not None:
        algorithm = request.models.drafter.algorithm
        if algorithm not in TREE_ALGORITHMS:
            items.append(
                Constraint(
                    id="ENGINE-TREE",
                    kind="engine",
                    text=f"{dialect.id} has no tree for a {algorithm} drafter",
                    allowed=~tree,
                    relax="a --dialect that has trees",
                )
            )
    drafter = request.models.drafter
    if (
        request.workload.prefix_hit_frac > 0
        and drafter is not None
        and drafter.algorithm == "DFLASH"
        and prefix_cache_unsafe(request.models.model, request.target.version)
    ):
        items.append(
            Constraint(
                id="ENGINE-PREFIX-CACHE",
                kind="engine",
                text=f"a DFLASH chain on {request.target.version} runs without the prefix cache that the traffic hits",
                allowed=(table.speculation != 1)[:, None, None],
                relax="--prefix-hit 0, or a newer --engine-version",
            )
        )
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


def _request_constraints(request: Request, table: CandidateTable, scores: Scores) -> list[Constraint]:
    workload, n_running = request.workload, int(scores.n_running)
    ranks = table.attention_dp_size[:, None]
    served = table.sizes.max_running_requests[None, :] // ranks * ranks * table.replicas[:, None]
    on_replica = np.ceil(n_running / np.minimum(table.replicas, n_running))
    on_rank = np.ceil(on_replica / table.attention_dp_size)
    covered = ~table.cuda_graph[:, None] | (table.cuda_graph_max_bs >= on_rank[:, None])
    queue = "" if workload.allow_queue else ", or --allow-queue"
    # While others wait every seat is taken: with more seats than n_running more would run, at another step time.
    seated = served == n_running if n_running < workload.target_c else served >= n_running
    items = [
        Constraint(
            id="REQUEST-TARGET-C",
            kind="request",
            text=f"{n_running} requests run at a time",
            allowed=seated[:, :, None],
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
    if workload.max_ttft_s is not None:
        first = first_token(scores, workload)
        if first.holds.any():
            items.append(
                Constraint(
                    id="REQUEST-MAX-TTFT",
                    kind="request",
                    text=f"mean TTFT at most {workload.max_ttft_s * 1e3:g} ms",
                    allowed=(first.holds & (first.value_s <= workload.max_ttft_s))[:, None, None],
                    relax="a higher --max-ttft-ms, a shorter --context, or fewer clients",
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
