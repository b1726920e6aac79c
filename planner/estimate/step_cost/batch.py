"""Columns in and out of the step-cost model: what is asked for many candidates at once, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.domain import Provenance
from planner.errors import InputError, Problem

__all__ = ["ATTENTION_BACKENDS", "SPECULATION_KINDS", "StepBatch", "StepColumns", "attention_backend_code"]

ATTENTION_BACKENDS = (
    "default",
    "triton",
    "trtllm_mla",
    "flashinfer",
    "fa3",
    "fa4",
    "flashmla",
    "cutlass_mla",
    "trtllm_mha",
)
"""Code of an attention backend is its index. Only ``triton`` and the kernels of the tables are told apart."""

SPECULATION_KINDS = ("off", "chain", "tree")
"""Code of a kind of speculation is its index."""

_DEFAULTS: Mapping[str, float] = {
    "tp_size": 1,
    "ep_size": 1,
    "attention_dp_size": 1,
    "q_len": 1,
    "speculation": 0,
    "running": 1,
    "context_tok": 1024,
    "prompt_tok": 0,
    "output_tok": 1024,
    "accept_len": 1,
    "cuda_graph": 1,
    "cuda_graph_max_bs": 1 << 20,
    "nvls": 0,
    "allreduce_fusion": 0,
    "kv_bytes_per_element": 2,
    "attention_backend": 0,
    "topk": 1,
    "draft_steps": 0,
    "overlap": 0.5,
}

_MAY_BE_ZERO = frozenset(
    {"speculation", "attention_backend", "prompt_tok", "running", "cuda_graph_max_bs", "draft_steps", "overlap"}
)
_BOOLS = ("cuda_graph", "nvls", "allreduce_fusion")


def attention_backend_code(name: str) -> int:
    """Index in :data:`ATTENTION_BACKENDS`; a backend without a code of its own counts as ``default``."""
    return ATTENTION_BACKENDS.index(name) if name in ATTENTION_BACKENDS else 0


@record(eq=False)
class StepBatch:
    """One row for each candidate; every array is read-only, shape (n,). Build it with :meth:`from_columns`."""

    tp_size: NDArray[np.float64]
    ep_size: NDArray[np.float64]
    attention_dp_size: NDArray[np.float64]
    q_len: NDArray[np.float64]
    """Tokens that one step runs for each request; 1 without speculation."""
    speculation: NDArray[np.float64]
    """0 off, 1 chain, 2 tree."""
    running: NDArray[np.float64]
    """Requests that run at a time on one replica (mean, may be fractional)."""
    context_tok: NDArray[np.float64]
    """Mean length of a running sequence."""
    prompt_tok: NDArray[np.float64]
    """Prompt tokens computed for one request, after prefix hits; 0: no prefill interferes."""
    output_tok: NDArray[np.float64]
    accept_len: NDArray[np.float64]
    """Tokens committed by one step: with ``output_tok`` it says how often a request ends and a prefill runs."""
    cuda_graph: NDArray[np.bool_]
    cuda_graph_max_bs: NDArray[np.float64]
    """Largest captured batch of one attention-DP rank: a larger one runs eager."""
    nvls: NDArray[np.bool_]
    allreduce_fusion: NDArray[np.bool_]
    kv_bytes_per_element: NDArray[np.float64]
    attention_backend: NDArray[np.float64]
    """Index in :data:`ATTENTION_BACKENDS`."""
    topk: NDArray[np.float64]
    """Branches that an autoregressive drafter keeps for each request; 1 for a chain."""
    draft_steps: NDArray[np.float64]
    """Forwards of an autoregressive drafter in one step (``--speculative-num-steps``); 0: as deep as q_len asks, up to
    the drafter's block."""
    overlap: NDArray[np.float64]
    """Whether the scheduler's host work overlaps the GPU's: 1 on, 0 off, 0.5 not known."""

    @classmethod
    def from_columns(cls, **columns: ArrayLike) -> StepBatch:
        """From columns of shape (n,) or scalars; what is absent takes its default (a plain autoregressive step).

        Raises:
            InputError: unknown column, columns of different length, or a value out of range.
        """
        unknown = sorted(columns.keys() - _DEFAULTS.keys())
        if unknown:
            raise InputError([Problem("no such column", field=name) for name in unknown])
        arrays = {name: np.atleast_1d(np.asarray(columns.get(name, default))) for name, default in _DEFAULTS.items()}
        sizes = {array.size for array in arrays.values()} - {1}
        if len(sizes) > 1 or any(array.ndim != 1 for array in arrays.values()):
            raise InputError(f"columns of a StepBatch must have one length, got {sorted(sizes)}")
        n = sizes.pop() if sizes else 1
        problems = []
        built: dict[str, NDArray[np.generic]] = {}
        for name, array in arrays.items():
            column = np.broadcast_to(array, (n,)).astype(bool if name in _BOOLS else float)
            if name not in _BOOLS:
                low = 0.0 if name in _MAY_BE_ZERO else 1e-9
                if not np.all(np.isfinite(column)) or np.any(column < low):
                    problems.append(Problem("must be finite and above zero", field=name))
            column.setflags(write=False)
            built[name] = column
        if problems:
            raise InputError(problems)
        return cls(**built)  # type: ignore[arg-type]

    @property
    def n_rows(self) -> int:
        """Number of candidates n."""
        return int(self.tp_size.size)

    def take(self, index: ArrayLike) -> StepBatch:
        """Rows by index or mask."""
        where = np.asarray(index)
        columns = {f.name: getattr(self, f.name)[where] for f in fields(self)}
        for column in columns.values():
            column.setflags(write=False)
        return StepBatch(**columns)


@record(eq=False)
class StepColumns:
    """Predicted seconds of one step for each row of a batch; all arrays (n,)."""

    value_s: NDArray[np.float64]
    low_s: NDArray[np.float64]
    """5 % quantile."""
    high_s: NDArray[np.float64]
    """95 % quantile."""
    parts: Mapping[str, NDArray[np.float64]]
    """Seconds by part; they add up to ``value_s`` (``saved`` and ``hidden`` may be below zero)."""
    provenance: Mapping[str, Provenance]
    """Ground of each part."""
    extrapolated: NDArray[np.bool_]
    """Rows that lie outside the tables or outside the calibration."""
    notes: tuple[str, ...] = ()
    """What the figures rest on, in short sentences, the same for all rows."""
