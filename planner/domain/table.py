"""Many candidates at once: columns as read-only arrays, three levels deep.

A *core* row (n of them) is everything that moves the step time or the accept length; a *size* (m) is a choice of
``max_running_requests`` and graph batch, a *fraction* (k) one of ``mem_fraction_static``: these two only decide
whether the row is allowed. The whole space is their product, shape ``(n, m, k)``; it is never spelled out row by row.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain.launch import Candidate, Speculation

__all__ = ["CandidateTable", "SizeTable"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SPECULATION_BY_CODE = (Speculation.OFF, Speculation.CHAIN, Speculation.TREE)


@record(eq=False)
class SizeTable:
    """Sizing choices, shape ``(m,)`` each."""

    max_running_requests: Ints
    """Of one server."""
    cuda_graph_max_bs_frac: Floats
    """Largest captured batch as a share of the requests that may run on a rank; 1 captures all of them."""

    def __post_init__(self) -> None:
        _freeze(self)

    def __len__(self) -> int:
        return len(self.max_running_requests)


@record(eq=False)
class CandidateTable:
    """Core rows, shape ``(n,)`` each, with the sizing choices they are combined with."""

    tp_size: Ints
    ep_size: Ints
    attention_dp_size: Ints
    replicas: Ints
    speculation: Ints
    """0 off, 1 chain, 2 tree."""
    budget: Ints
    topk: Ints
    cuda_graph: Bools
    enable_nccl_nvls: Bools
    allreduce_fusion: Bools
    attention_backend: Ints
    """Index into ``backends``."""
    page_size: Ints
    kv_cache_dtype: Ints
    """Index into ``kv_dtypes``."""
    sizes: SizeTable
    mem_fraction_static: Floats
    """Shares of device memory for weights and KV, ``(k,)``."""
    backends: tuple[str, ...]
    kv_dtypes: tuple[str, ...]

    def __post_init__(self) -> None:
        _freeze(self)

    def __len__(self) -> int:
        return len(self.tp_size)

    @cached_property
    def q_len(self) -> Ints:
        """Tokens that one verify step runs per request, ``(n,)``."""
        return self.budget + 1

    @cached_property
    def running_per_rank(self) -> Ints:
        """Requests that may run on one attention-DP rank, ``(n, m)``."""
        share = self.sizes.max_running_requests[None, :] // self.attention_dp_size[:, None]
        return np.asarray(np.maximum(1, share), dtype=np.int64)

    @cached_property
    def cuda_graph_max_bs(self) -> Ints:
        """Largest captured batch of a rank, ``(n, m)``; 0 without graphs."""
        captured = np.ceil(self.running_per_rank * self.sizes.cuda_graph_max_bs_frac[None, :] - 1e-9).astype(np.int64)
        return np.where(self.cuda_graph[:, None], captured, 0)

    @cached_property
    def verify_rows(self) -> Ints:
        """Rows that a rank runs in one verify step, ``(n, m)``: as ``Candidate.verify_rows_per_rank``."""
        running = self.running_per_rank
        captured = np.where(self.cuda_graph[:, None], np.minimum(self.cuda_graph_max_bs, running), running)
        return np.asarray(captured * self.q_len[:, None])

    @property
    def n_candidates(self) -> int:
        """Cells of the product."""
        return len(self) * len(self.sizes) * len(self.mem_fraction_static)

    def candidate(self, row: int, size: int, fraction: int, *, dialect: str, engine_version: str | None) -> Candidate:
        """One cell of the product as a value."""
        running = max(1, int(self.sizes.max_running_requests[size]) // int(self.attention_dp_size[row]))
        graph = bool(self.cuda_graph[row])
        captured = int(np.ceil(running * float(self.sizes.cuda_graph_max_bs_frac[size]) - 1e-9)) if graph else 0
        budget = int(self.budget[row])
        return Candidate(
            tp_size=int(self.tp_size[row]),
            ep_size=int(self.ep_size[row]),
            attention_dp_size=int(self.attention_dp_size[row]),
            replicas=int(self.replicas[row]),
            speculation=SPECULATION_BY_CODE[int(self.speculation[row])],
            budget=budget,
            topk=int(self.topk[row]),
            q_len=budget + 1,
            max_running_requests=int(self.sizes.max_running_requests[size]),
            cuda_graph=graph,
            cuda_graph_max_bs=captured,
            enable_nccl_nvls=bool(self.enable_nccl_nvls[row]),
            allreduce_fusion=bool(self.allreduce_fusion[row]),
            attention_backend=self.backends[int(self.attention_backend[row])],
            page_size=int(self.page_size[row]),
            kv_cache_dtype=self.kv_dtypes[int(self.kv_cache_dtype[row])],
            mem_fraction_static=float(self.mem_fraction_static[fraction]),
            dialect=dialect,
            engine_version=engine_version,
        )

    @classmethod
    def of(cls, candidate: Candidate) -> CandidateTable:
        """A table of one row and one size: the scalar form of every vectorised function."""
        running = max(1, candidate.max_running_requests // candidate.attention_dp_size)
        one = np.ones(1, dtype=np.int64)
        return cls(
            tp_size=one * candidate.tp_size,
            ep_size=one * candidate.ep_size,
            attention_dp_size=one * candidate.attention_dp_size,
            replicas=one * candidate.replicas,
            speculation=one * SPECULATION_BY_CODE.index(candidate.speculation),
            budget=one * candidate.budget,
            topk=one * candidate.topk,
            cuda_graph=np.array([candidate.cuda_graph]),
            enable_nccl_nvls=np.array([candidate.enable_nccl_nvls]),
            allreduce_fusion=np.array([candidate.allreduce_fusion]),
            attention_backend=one * 0,
            page_size=one * candidate.page_size,
            kv_cache_dtype=one * 0,
            sizes=SizeTable(
                max_running_requests=one * candidate.max_running_requests,
                cuda_graph_max_bs_frac=np.array([candidate.cuda_graph_max_bs / running]),
            ),
            mem_fraction_static=np.array([candidate.mem_fraction_static]),
            backends=(candidate.attention_backend,),
            kv_dtypes=(candidate.kv_cache_dtype,),
        )


def _freeze(table: CandidateTable | SizeTable) -> None:
    lengths = set()
    for field in fields(table):
        value = getattr(table, field.name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
            if field.name == "mem_fraction_static":
                continue
            if value.ndim != 1:
                raise ValueError(f"{field.name} has {value.ndim} dimensions, a column has one")
            lengths.add(len(value))
    if len(lengths) > 1:
        raise ValueError(f"columns of different lengths: {sorted(lengths)}")
