"""Named constraints over the space: each is a mask, so that any one can be left out to see what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import DrafterProfile, HardwareProfile, Limit, ModelProfile, Workload
from planner.domain.table import CandidateTable
from planner.estimate.memory import (
    CONTEXT_BYTES,
    KV_BYTES_PER_ELEMENT,
    draft_bytes_per_rank,
    graph_bytes_per_rank,
    kv_bytes_per_tok_per_rank,
    kv_capacity_tok,
    reserve_bytes_per_rank,
    triton_split_bytes_per_rank,
    weight_bytes_per_rank,
)
from planner.limits import LimitContext, LimitVerdict, evaluate_limit
from planner.search.cell import Cell

__all__ = ["Constraint", "ConstraintKind", "Constraints", "memory_constraints"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

ConstraintKind = str
"""``limit``, ``request`` (what the user asked), ``memory`` or ``engine``."""


@record(eq=False)
class Constraint:
    """One named mask, broadcastable to ``(n, m, k)``."""

    id: str
    kind: ConstraintKind
    text: str
    """As it reads in a conflict: ``max_tpot_s <= 0.008``."""
    allowed: Bools
    relax: str = ""
    """What the user can do about it."""
    verdict: LimitVerdict | None = None


@record(eq=False)
class Constraints:
    """All constraints of a search, in a fixed order."""

    items: tuple[Constraint, ...]
    shape: tuple[int, int, int]
    _ids: Mapping[str, Constraint] = field(init=False)
    _masks: dict[tuple[frozenset[str], frozenset[str] | None], Bools] = field(init=False, default_factory=dict)
    """Masks that were asked for: an explanation asks for each several times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", {item.id: item for item in self.items})
        if len(self._ids) != len(self.items):
            raise ValueError("two constraints share an id")

    def __getitem__(self, id_: str) -> Constraint:
        return self._ids[id_]

    def __contains__(self, id_: object) -> bool:
        return id_ in self._ids

    def mask(self, *, without: Iterable[str] = (), only: Iterable[str] | None = None) -> Bools:
        """Cells that every constraint allows, ``(n, m, k)``; some left out, or only some looked at."""
        left_out = frozenset(without)
        wanted = None if only is None else frozenset(only)
        if (left_out, wanted) not in self._masks:
            self._masks[left_out, wanted] = self._mask(left_out, wanted)
        return self._masks[left_out, wanted]

    def _mask(self, left_out: frozenset[str], wanted: frozenset[str] | None) -> Bools:
        by_shape: dict[tuple[int, ...], list[Bools]] = {(1, 1, 1): [np.ones((1, 1, 1), dtype=bool)]}
        for item in self.items:
            if item.id not in left_out and (wanted is None or item.id in wanted):
                by_shape.setdefault(item.allowed.shape, []).append(item.allowed)
        # Masks of one shape among themselves first: the full size appears in one or two products.
        masks = sorted((reduce(np.logical_and, same) for same in by_shape.values()), key=lambda mask: mask.size)
        return np.broadcast_to(reduce(np.logical_and, masks), self.shape)


def limit_constraint(limit: Limit, table: CandidateTable, context: LimitContext, *, risk: str) -> Constraint:
    """A limit as a constraint of the search."""
    verdict = evaluate_limit(limit, table, context)
    bound = limit.known_good if limit.known_good is not None else None
    text = f"{limit.id} ({limit.title}" + (f", {limit.shape.value} {bound:g})" if bound is not None else ")")
    return Constraint(
        id=limit.id,
        kind="limit",
        text=text,
        allowed=verdict.allowed(risk),
        relax=f'--lift {limit.id}="reason"',
        verdict=verdict,
    )


@record(eq=False)
class MemoryColumns:
    """Memory of one rank over the space, in bytes."""

    weight_bytes: Floats
    """``(n,)``."""
    draft_bytes: Floats
    """``(n,)``."""
    graph_bytes: Floats
    """``(n, m)``."""
    reserve_bytes: float
    kv_bytes_per_tok: Floats
    """``(n,)``."""
    needed_tok: Floats
    """KV tokens that the workload needs on a rank, ``(n,)``."""

    def capacity_tok(self, hardware: HardwareProfile, cell: Cell, mem_fraction_static: float) -> float:
        """KV tokens that a rank holds in one cell."""
        return float(
            kv_capacity_tok(
                hardware,
                mem_fraction_static=mem_fraction_static,
                weight_bytes=self.weight_bytes[cell.row] + self.draft_bytes[cell.row],
                outside_bytes=self.graph_bytes[cell.row, cell.size] + self.reserve_bytes,
                kv_bytes_per_tok=self.kv_bytes_per_tok[cell.row],
            )
        )


def memory_columns(
    table: CandidateTable,
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None,
    workload: Workload,
    *,
    n_running: float,
    context_length_tok: int,
    chunked_prefill_tok: float,
    draft_as_target: bool = False,
) -> MemoryColumns:
    """Weights, draft and graphs of a rank for every cell, and the KV tokens that the workload needs there."""
    tp, adp = table.tp_size, table.attention_dp_size
    drafted = table.budget > 0
    weights = weight_bytes_per_rank(model, tp_size=tp, attention_dp_size=adp)
    draft = np.where(drafted, draft_bytes_per_rank(drafter, tp_size=tp), 0.0) if drafter is not None else 0.0 * weights
    element = np.array([KV_BYTES_PER_ELEMENT[name] for name in table.kv_dtypes])[table.kv_cache_dtype]
    per_tok = kv_bytes_per_tok_per_rank(model, tp_size=tp, attention_dp_size=adp, kv_bytes_per_element=element)
    if drafter is not None:
        with_draft = kv_bytes_per_tok_per_rank(
            model,
            tp_size=tp,
            attention_dp_size=adp,
            kv_bytes_per_element=element,
            drafter=drafter,
            draft_as_target=draft_as_target,
        )
        per_tok = np.where(drafted, with_draft, per_tok)
    graphs = graph_bytes_per_rank(
        model,
        cuda_graph_max_bs=table.cuda_graph_max_bs,
        q_len=table.q_len[:, None],
        is_tree=(table.speculation == 2)[:, None],
        context_length_tok=context_length_tok,
    )
    splits = triton_split_bytes_per_rank(
        hardware,
        model,
        rows=table.cuda_graph_max_bs * table.q_len[:, None],
        tp_size=tp[:, None],
        attention_dp_size=adp[:, None],
        context_length_tok=context_length_tok,
    )
    triton = np.array([name == "triton" for name in table.backends])[table.attention_backend]
    graphs = graphs + np.where(triton[:, None], splits, 0.0)
    active = np.minimum(table.replicas, max(1.0, np.floor(n_running)))
    on_rank = np.ceil(np.ceil(n_running / active) / adp)
    return MemoryColumns(
        weight_bytes=weights,
        draft_bytes=np.asarray(draft),
        graph_bytes=graphs,
        reserve_bytes=reserve_bytes_per_rank(model, chunked_prefill_tok=chunked_prefill_tok),
        kv_bytes_per_tok=per_tok,
        needed_tok=np.asarray(on_rank * (workload.peak_context_tok + table.q_len), dtype=np.float64),
    )


def memory_constraints(
    memory: MemoryColumns, table: CandidateTable, hardware: HardwareProfile, workload: Workload
) -> list[Constraint]:
    """Weights fit; the KV pool holds what runs; the static share leaves room for graphs and activations.

    Together the last two say that ``kv_capacity_tok`` is at least what is needed.
    """
    total = float(hardware.memory_bytes)
    static = table.mem_fraction_static[None, None, :] * (total - CONTEXT_BYTES)
    weights = memory.weight_bytes + memory.draft_bytes
    filled = weights + (memory.needed_tok * memory.kv_bytes_per_tok)
    outside = memory.graph_bytes + memory.reserve_bytes
    return [
        Constraint(
            id="MEMORY-WEIGHTS",
            kind="memory",
            text=f"weights and draft fit in the static share of {total / 2**30:,.0f} GiB",
            allowed=weights[:, None, None] < static,
            relax="more GPUs, a smaller model or a stronger quantisation",
        ),
        Constraint(
            id="MEMORY-OUTSIDE",
            kind="memory",
            text="graphs, activations and context fit beside the static share",
            allowed=static + outside[:, :, None] <= total,
            relax="fewer captured batches or a smaller prefill chunk",
        ),
        Constraint(
            id="KV-CAPACITY",
            kind="memory",
            text=f"the KV pool holds every running request at {workload.peak_context_tok:,} tokens",
            allowed=filled[:, None, None] <= static,
            relax="a shorter --context or --output-len, fewer clients, or --allow-queue",
        ),
    ]
