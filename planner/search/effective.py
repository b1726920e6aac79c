"""What the engine runs, as a Candidate: the bridge from a resolved launch to limits, memory and predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.domain import Candidate, DrafterProfile, Speculation
from planner.engine.dialects import Dialect, TreeForm
from planner.engine.resolution import Resolution

__all__ = ["candidate_of", "speculation_of"]

UNBOUND_REQUESTS = 2048
"""max_running_requests of a server that is given none and does not speculate: the engine's lower bound
(0.5.23 kv_cache_configurator.py:3119-3172; the KV pool may lower it)."""


def candidate_of(
    resolution: Resolution, *, dialect: Dialect, drafter: DrafterProfile | None, replicas: int = 1
) -> Candidate:
    """The effective settings that the planner knows, for one server."""
    values = resolution.effective
    speculation, budget, topk = speculation_of(values, dialect=dialect, drafter=drafter)
    shared = bool(values.get("enable_dp_attention"))
    attention_dp = max(int(values.get("attn_dp_size") or 1), int(values.get("dp_size") or 1) if shared else 1)
    servers = 1 if shared else int(values.get("dp_size") or 1)
    requests = int(values.get("max_running_requests") or UNBOUND_REQUESTS)
    graph = _graphs_on(values)
    captured = int(values.get("cuda_graph_max_bs_decode") or values.get("cuda_graph_max_bs") or 0) if graph else 0
    fusion = values.get("enable_flashinfer_allreduce_fusion") or values.get("flashinfer_allreduce_fusion_backend")
    return Candidate(
        tp_size=int(values.get("tp_size") or 1),
        ep_size=int(values.get("ep_size") or 1),
        attention_dp_size=attention_dp,
        replicas=replicas * servers,
        speculation=speculation,
        budget=budget,
        topk=topk,
        q_len=budget + 1,
        max_running_requests=requests,
        cuda_graph=graph,
        cuda_graph_max_bs=min(captured, max(1, requests // attention_dp)) if graph else 0,
        enable_nccl_nvls=bool(values.get("enable_nccl_nvls")),
        allreduce_fusion=bool(fusion),
        attention_backend=str(values.get("decode_attention_backend") or values.get("attention_backend") or "default"),
        page_size=int(values.get("page_size") or 1),
        kv_cache_dtype={"auto": "bf16", "bfloat16": "bf16", None: "bf16"}.get(
            values.get("kv_cache_dtype"), str(values.get("kv_cache_dtype"))
        ),
        mem_fraction_static=float(values.get("mem_fraction_static") or 0.88),
        dialect=dialect.id,
        engine_version=resolution.engine_version.release,
    )


def speculation_of(
    values: Mapping[str, Any], *, dialect: Dialect, drafter: DrafterProfile | None
) -> tuple[Speculation, int, int]:
    """``(form, budget, topk)`` of effective values: budget is what a verify step runs beside the root."""
    algorithm = str(values.get("speculative_algorithm") or "").upper()
    if not algorithm or algorithm == "NONE":
        return Speculation.OFF, 0, 0
    drafted = values.get("speculative_num_draft_tokens")
    topk = int(values.get("speculative_eagle_topk") or 1)
    if dialect.has_tree and algorithm == dialect.algorithm:
        nodes = values.get("speculative_ddtree_budget")
        q_len = dialect.q_len(num_draft_tokens=int(drafted or 1), budget=int(nodes) if nodes is not None else None)
        budget = max(1, q_len - 1)
        block = drafter.block_size if drafter is not None else None
        if dialect.tree is TreeForm.BUDGET and block is not None:
            if not dialect.full_tree(budget=budget, block_size=block):
                return Speculation.CHAIN, budget, 1
            topk = dialect.derived_topk(budget=budget, block_size=block)
        return Speculation.TREE, budget, max(2, topk)
    budget = max(1, int(drafted or 2) - 1)
    return (Speculation.TREE, budget, topk) if topk > 1 else (Speculation.CHAIN, budget, 1)


def _graphs_on(values: Mapping[str, Any]) -> bool:
    if values.get("disable_cuda_graph"):
        return False
    return values.get("cuda_graph_backend_decode", "full") not in (None, "disabled")
