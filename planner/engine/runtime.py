"""What happens after resolution, when memory is known: request pool, captured batches, NCCL environment, MLA prefill.

None of it is in the effective arguments, all of it follows from them. Sources: 0.5.23
``srt/mem_cache/kv_cache_configurator.py:3119``, ``srt/model_executor/runner/base_cuda_graph_runner.py:65``,
``srt/entrypoints/engine.py:1898``, ``srt/models/deepseek_common/attention_backend_handler.py``; 0.5.12.post1
``srt/model_executor/cuda_graph_runner.py:515``, ``srt/model_executor/model_runner_kv_cache_mixin.py:817``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.engine.resolution import Resolution

__all__ = [
    "RuntimeFacts",
    "capture_sizes",
    "graph_batch_step",
    "nccl_environment",
    "request_pool",
    "runtime_facts",
]

_NO_PREFIX_CHUNKS = ("triton",)
"""MLA prefill backends that run a chunk with a cached prefix through the absorbed path, one row a token."""


@dataclass(frozen=True, slots=True)
class RuntimeFacts:
    """What one attention-DP rank will do with the effective arguments."""

    request_pool: int | None
    """Requests that a rank can run; None: only the KV capacity bounds it."""
    capture_sizes: tuple[int, ...]
    """Batch sizes that decode or verify graphs are captured for; empty without graphs."""
    tokens_per_request: int
    """Rows of one request in a decode or verify step."""
    verify_rows: int | None
    """Rows of the largest captured step: largest batch x tokens per request."""
    nccl_env: tuple[tuple[str, str], ...]
    prefix_prefill_absorbs: bool
    """With MLA: whether a prefill chunk behind a cached prefix goes through the absorbed path with a row a token."""


def runtime_facts(
    resolution: Resolution, *, token_capacity: int | None = None, context_len: int | None = None
) -> RuntimeFacts:
    """Facts of a resolved launch. ``token_capacity``: tokens of the KV pool of a rank, where it is known."""
    values = resolution.effective
    pool = request_pool(
        values, token_capacity=token_capacity, context_len=context_len, rules=resolution.engine_version.rules
    )
    sizes = capture_sizes(values, pool=pool)
    tokens = int(values.get("speculative_num_draft_tokens") or 1) if values.get("speculative_algorithm") else 1
    budget = values.get("speculative_ddtree_budget")
    if budget is not None:
        tokens = int(budget) + 1
    return RuntimeFacts(
        request_pool=pool,
        capture_sizes=sizes,
        tokens_per_request=tokens,
        verify_rows=sizes[-1] * tokens if sizes else None,
        nccl_env=nccl_environment(values, dict(resolution.env)),
        prefix_prefill_absorbs=resolution.is_mla and _absorbs(values),
    )


def request_pool(
    values: Mapping[str, Any], *, token_capacity: int | None, context_len: int | None, rules: str
) -> int | None:
    """Requests that one attention-DP rank can run.

    0.5.23: min(max_running_requests // attention DP, capacity // 2); 0.5.12.post1 bounds by the estimate
    capacity / context x 512, kept in 2048 to 4096, instead of capacity // 2. Unset: that estimate, at most
    capacity // 2.
    """
    asked = values.get("max_running_requests")
    ranks = max(1, int(values.get("attn_dp_size") or 1))
    estimate = None
    if token_capacity is not None and context_len:
        estimate = max(min(int(token_capacity / context_len * 512), 4096), 2048)
    if asked is not None:
        own = max(1, int(asked) // ranks)
        bound = estimate if rules == "0.5.12.post1" else token_capacity // 2 if token_capacity is not None else None
        return own if bound is None else min(own, bound)
    if estimate is None or token_capacity is None:
        return None
    return min(estimate, token_capacity // 2)


def capture_sizes(values: Mapping[str, Any], *, pool: int | None) -> tuple[int, ...]:
    """Captured batch sizes: the ladder up to the request pool, the pool itself included where the ladder goes beyond.

    With gathered buffers (attention DP, or an all-to-all backend) sizes are multiples of the attention-TP group; with
    two-batch overlap of two.
    """
    if values.get("cuda_graph_backend_decode") == "disabled":
        return ()
    ladder = list(values.get("cuda_graph_bs_decode") or ())
    if pool is None or not ladder:
        return tuple(ladder)
    ranks = max(1, int(values.get("attn_dp_size") or 1))
    gathered = ranks > 1 or values.get("moe_dense_tp_size") == 1 or values.get("moe_a2a_backend") not in (None, "none")
    base = 2 if values.get("enable_two_batch_overlap") else 1
    if gathered:
        base *= max(1, int(values.get("tp_size") or 1) // ranks // max(1, int(values.get("attn_cp_size") or 1)))
    tokens = int(values.get("speculative_num_draft_tokens") or 1) if values.get("speculative_algorithm") else 1
    width = 1 if values.get("enable_two_batch_overlap") else tokens
    pool = -(-pool // base) * base
    if max(ladder) > pool:
        ladder.append(pool)
    return tuple(sorted({size for size in ladder if size <= pool and size * width % base == 0}))


def graph_batch_step(*, tp_size: int, attention_dp_size: int, tokens_per_request: int) -> int:
    """Step of the batch sizes that graphs can be captured for: with attention DP the rows of a batch must be a multiple
    of the attention-TP group. Other sizes are left out, and a batch runs padded to the next captured one."""
    if attention_dp_size == 1:
        return 1
    group = tp_size // attention_dp_size
    return group // math.gcd(group, tokens_per_request)


def nccl_environment(values: Mapping[str, Any], env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """``NCCL_NVLS_ENABLE`` and ``NCCL_CUMEM_ENABLE`` as the engine sets them: flags win, else what is set, else 0."""
    symmetric = bool(values.get("enable_symm_mem"))
    nvls = symmetric or bool(values.get("enable_nccl_nvls"))
    result = {}
    for name, on, forced in (("NCCL_CUMEM_ENABLE", symmetric, symmetric), ("NCCL_NVLS_ENABLE", nvls, nvls)):
        result[name] = str(int(on)) if forced or name not in env else env[name]
    if values.get("enable_deterministic_inference") and int(values.get("tp_size") or 1) > 1:
        result["NCCL_ALGO"] = "allreduce:tree"
    return tuple(result.items())


def _absorbs(values: Mapping[str, Any]) -> bool:
    """Triton runs every chunk behind a prefix absorbed; so does any backend inside a captured prefill graph, and
    fa3 or triton in deterministic mode."""
    backend = values.get("prefill_attention_backend") or values.get("attention_backend")
    captured = values.get("cuda_graph_backend_prefill") == "breakable"
    return backend in _NO_PREFIX_CHUNKS or captured or bool(values.get("enable_deterministic_inference"))
