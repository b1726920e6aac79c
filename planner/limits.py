"""Limit data evaluated: one definition serves the search (mask), the review (finding) and the answer (binding)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from packaging.version import Version

from planner._record import record
from planner.domain import HardwareProfile, Limit, LimitShape, LimitStatus, ModelProfile, Workload
from planner.domain.table import SPECULATION_BY_CODE, CandidateTable

__all__ = ["LimitContext", "LimitVerdict", "evaluate_limit", "holds_in_plan", "quantity"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@record(eq=False)
class LimitContext:
    """What a limit may look at beside the candidates."""

    hardware: HardwareProfile
    model: ModelProfile
    workload: Workload
    block_size: int | None = None
    accept_len: Floats | None = None
    """Predicted accept length of each core row, ``(n,)``."""


@record(eq=False)
class LimitVerdict:
    """A limit over a table. Arrays broadcast to ``(n, m, k)``."""

    limit: Limit
    applies: Bools
    """Where the limit speaks."""
    value: Floats | None
    """The quantity; None for limits on settings."""
    safe: Bools
    """On the known-good side, or outside the scope."""
    edge: Bools
    """Not known bad: the untested interval is allowed too (without a known_bad it has no end)."""

    def allowed(self, risk: str) -> Bools:
        """Mask for ``--risk safe`` or ``edge``."""
        return self.edge if risk == "edge" else self.safe


def holds_in_plan(limit: Limit, engine_version: str | None) -> bool:
    """Whether a plan must obey a limit: on every engine version until a ``fixed_in`` record says otherwise.

    A version that is not known never counts as mended.
    """
    if limit.status is LimitStatus.RETIRED:
        return False
    if limit.status is LimitStatus.FIXED_IN and limit.fixed_in is not None and engine_version is not None:
        return Version(engine_version) < Version(limit.fixed_in)
    return True


def quantity(name: str, table: CandidateTable, context: LimitContext) -> Floats:
    """Value of a named quantity (see ``planner.domain.QUANTITIES``), broadcastable to ``(n, m, k)``.

    Raises:
        KeyError: the name is not a quantity.
    """
    found = np.asarray(_QUANTITIES[name](table, context), dtype=np.float64)
    return found if found.ndim == 3 else found[:, :, None]


def evaluate_limit(limit: Limit, table: CandidateTable, context: LimitContext) -> LimitVerdict:
    """Apply one limit to every candidate of a table."""
    applies = _scope(limit, table, context)
    value: Floats | None = None
    if limit.shape in (LimitShape.AT_MOST, LimitShape.AT_LEAST):
        assert limit.quantity is not None
        assert limit.known_good is not None
        value = quantity(limit.quantity, table, context)
        sign = 1.0 if limit.shape is LimitShape.AT_MOST else -1.0
        good = sign * value <= sign * limit.known_good + 1e-9
        bad_from = np.inf if limit.known_bad is None else sign * limit.known_bad
        not_bad = good | (sign * value < bad_from - 1e-9)
    elif limit.shape is LimitShape.ONE_OF:
        assert limit.quantity is not None
        good = not_bad = _one_of(limit.quantity, limit.allowed, table, context)
    else:
        terms = [_setting_is(name, wanted, table, context) for name, wanted in limit.terms()]
        if limit.shape is LimitShape.NOT_TOGETHER:
            good = ~np.logical_and.reduce(np.broadcast_arrays(*terms))
        else:
            good = ~terms[0] | np.logical_and.reduce(np.broadcast_arrays(*terms[1:]))
        not_bad = good
    return LimitVerdict(limit=limit, applies=applies, value=value, safe=~applies | good, edge=~applies | not_bad)


def _column(values: NDArray[np.generic]) -> NDArray[np.generic]:
    return values[:, None]


def _accept_share(table: CandidateTable, context: LimitContext) -> Floats:
    if context.accept_len is None or not context.block_size:
        return np.zeros((len(table), 1))
    drafted = table.budget > 0
    return np.where(drafted, context.accept_len, 0.0)[:, None] / context.block_size


def _heads_per_rank(table: CandidateTable, context: LimitContext) -> NDArray[np.int64]:
    return context.model.n_heads * table.attention_dp_size // table.tp_size


_QUANTITIES: Mapping[str, Callable[[CandidateTable, LimitContext], NDArray[Any]]] = {
    "verify_rows_per_rank": lambda table, context: table.verify_rows,
    "verify_rows_x_heads_per_rank": lambda table, context: table.verify_rows * _heads_per_rank(table, context)[:, None],
    "q_len": lambda table, context: _column(table.q_len),
    "budget": lambda table, context: _column(table.budget),
    "topk": lambda table, context: _column(table.topk),
    "max_running_requests": lambda table, context: table.sizes.max_running_requests[None, :],
    "cuda_graph_max_bs": lambda table, context: table.cuda_graph_max_bs,
    "accept_len_over_block_size": _accept_share,
    "context_tok": lambda table, context: np.full((1, 1), context.workload.peak_context_tok),
    "tp_size": lambda table, context: _column(table.tp_size),
    "ep_size": lambda table, context: _column(table.ep_size),
    "attention_dp_size": lambda table, context: _column(table.attention_dp_size),
    "page_size": lambda table, context: _column(table.page_size),
    "mem_fraction_static": lambda table, context: table.mem_fraction_static[None, None, :],
}


def _scope(limit: Limit, table: CandidateTable, context: LimitContext) -> Bools:
    """Where the limit speaks, ``(n, 1, 1)``."""
    when = limit.when
    whole = (
        (when.sm is None or when.sm == context.hardware.sm)
        and (when.attention_kind is None or when.attention_kind == context.model.attention_kind.value)
        and (when.model is None or when.model == context.model.id)
        and (when.engine is None or when.engine == "sglang")
    )
    applies = np.full(len(table), whole)
    if when.heads_per_rank is not None:
        applies &= _heads_per_rank(table, context) == when.heads_per_rank
    if when.attention_backend is not None:
        applies &= _setting_is("attention_backend", when.attention_backend, table, context)[:, 0, 0]
    if when.cuda_graph is not None:
        applies &= table.cuda_graph == when.cuda_graph
    if when.speculation is not None:
        applies &= _setting_is("speculation", when.speculation, table, context)[:, 0, 0]
    return applies[:, None, None]


def _one_of(name: str, allowed: tuple[str, ...], table: CandidateTable, context: LimitContext) -> Bools:
    if name in _QUANTITIES:
        return np.isin(quantity(name, table, context), [float(value) for value in allowed])
    return np.asarray(np.logical_or.reduce([_setting_is(name, value, table, context) for value in allowed]))


def _setting_is(name: str, wanted: str, table: CandidateTable, context: LimitContext) -> Bools:
    """Where a setting has a value, ``(n, 1, 1)``."""
    if name == "nvls":
        return np.full((len(table), 1, 1), context.hardware.nvls == _truth(wanted))
    if name == "attention_backend":
        names: tuple[str, ...] = table.backends
        return np.isin(table.attention_backend, [i for i, found in enumerate(names) if found == wanted])[:, None, None]
    if name == "kv_cache_dtype":
        return np.isin(table.kv_cache_dtype, [i for i, found in enumerate(table.kv_dtypes) if found == wanted])[
            :, None, None
        ]
    if name == "speculation":
        codes = [i for i, found in enumerate(SPECULATION_BY_CODE) if found.value == wanted]
        return np.isin(table.speculation, codes)[:, None, None]
    column = getattr(table, name)
    if column.dtype == np.bool_:
        return np.asarray(column == _truth(wanted))[:, None, None]
    return np.asarray(column == float(wanted))[:, None, None]


def _truth(word: str) -> bool:
    return word.lower() in ("true", "on", "yes", "1")
