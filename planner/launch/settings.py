"""What runs against what was planned: /server_info and the log's capture lines against a Candidate."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from planner.diagnose.model import LogFacts
from planner.domain import Candidate, LaunchConfig, Speculation
from planner.launch.verdict import Mismatch

__all__ = ["changed_arguments", "compare_settings", "effective_running", "graph_batches"]

_KV_DTYPE = {
    "auto": "bf16",
    "bfloat16": "bf16",
    "float16": "bf16",
    "float32": "bf16",
    "fp8": "fp8_e4m3",
}
"""Spellings of the engine (ServerArgs.kv_cache_dtype) as a Candidate writes them; ``auto`` follows a 16-bit model."""


def effective_running(info: Mapping[str, Any]) -> int | None:
    """Requests that may run at a time over all attention-DP workers, as the scheduler says."""
    states = info.get("internal_states")
    if not isinstance(states, list) or not states:
        return None
    total = 0
    for state in states:
        value = state.get("effective_max_running_requests_per_dp") if isinstance(state, Mapping) else None
        if not isinstance(value, int):
            return None
        total += value
    workers = int(info.get("dp_size") or 1)
    return total if len(states) == workers else total // len(states) * workers


def graph_batches(info: Mapping[str, Any], facts: LogFacts | None) -> tuple[int, ...] | None:
    """Captured decode batch sizes, ascending; empty: graphs are off; None: not known."""
    if facts is not None and facts.captured_batch_sizes:
        return facts.captured_batch_sizes
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states and isinstance(states[0], Mapping) else {}
    captured = state.get("decode_cuda_graph_bs")
    if isinstance(captured, list):
        return tuple(sorted(int(size) for size in captured))
    config = _graph_config(info)
    if config.get("backend") == "disabled" or info.get("disable_cuda_graph") is True:
        return ()
    listed = config.get("bs") or info.get("cuda_graph_bs")
    return tuple(sorted(int(size) for size in listed)) if isinstance(listed, list) else None


def _graph_config(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Decode part of ``cuda_graph_config``, which 0.5.23 gives as an object, a JSON text or a Python text."""
    config = info.get("cuda_graph_config")
    if isinstance(config, str):
        for read in (json.loads, ast.literal_eval):
            try:
                config = read(config)
                break
            except (ValueError, SyntaxError):
                continue
    decode = config.get("decode") if isinstance(config, Mapping) else None
    return decode if isinstance(decode, Mapping) else {}


def compare_settings(
    expected: Candidate, info: Mapping[str, Any], facts: LogFacts | None = None
) -> tuple[tuple[Mismatch, ...], tuple[str, ...]]:
    """(settings that differ, settings that the server does not show)."""
    wrong: list[Mismatch] = []
    hidden: list[str] = []

    def check(field: str, want: object, have: object, note: str = "") -> None:
        if have is None:
            hidden.append(field)
        elif want != have:
            wrong.append(Mismatch(field=field, expected=str(want), actual=str(have), note=note))

    check("max_running_requests", expected.max_running_requests, effective_running(info), "throttled by the engine")
    check("tp_size", expected.tp_size, info.get("tp_size"))
    check("page_size", expected.page_size, info.get("page_size"))
    check("attention_backend", expected.attention_backend, _decode_backend(info))
    kv_dtype = info.get("kv_cache_dtype")
    check("kv_cache_dtype", expected.kv_cache_dtype, _KV_DTYPE.get(str(kv_dtype), kv_dtype))
    if expected.ep_size > 1 or info.get("ep_size") not in (None, 1):
        check("ep_size", expected.ep_size, info.get("ep_size"))
    if expected.attention_dp_size > 1 or info.get("enable_dp_attention"):
        check("attention_dp_size", expected.attention_dp_size, _attention_dp(info))
    share = info.get("mem_fraction_static")
    check(
        "mem_fraction_static", round(expected.mem_fraction_static, 4), None if share is None else round(float(share), 4)
    )
    check("enable_nccl_nvls", expected.enable_nccl_nvls, info.get("enable_nccl_nvls"))

    batches = graph_batches(info, facts)
    check("cuda_graph", expected.cuda_graph, None if batches is None else bool(batches))
    if expected.cuda_graph and batches:
        check("cuda_graph_max_bs", expected.cuda_graph_max_bs, max(batches))
    speculating = info.get("speculative_algorithm") is not None
    check("speculation", expected.speculation is not Speculation.OFF, speculating)
    if expected.speculation is not Speculation.OFF and speculating:
        check("q_len", expected.q_len, _q_len(info, facts), "tokens of a verify step per request")
    return tuple(wrong), tuple(hidden)


def _q_len(info: Mapping[str, Any], facts: LogFacts | None) -> int | None:
    """From the capture line where there is one; it cannot lie about the width, the arguments can (dialects differ)."""
    if facts is not None and facts.num_tokens_per_req is not None:
        return facts.num_tokens_per_req
    budget = info.get("speculative_ddtree_budget")
    if isinstance(budget, int):
        return budget + 1
    drafted = info.get("speculative_num_draft_tokens")
    return drafted if isinstance(drafted, int) else None


def _decode_backend(info: Mapping[str, Any]) -> object:
    return info.get("decode_attention_backend") or info.get("attention_backend")


def _attention_dp(info: Mapping[str, Any]) -> int | None:
    dp = info.get("dp_size")
    return (int(dp) if info.get("enable_dp_attention") else 1) if dp is not None else None


def changed_arguments(asked: LaunchConfig, info: Mapping[str, Any]) -> tuple[Mismatch, ...]:
    """Arguments of a plain argv that the engine runs with another value."""
    changed = []
    for name, value in asked.given().items():
        if name not in info or isinstance(value, tuple):
            continue
        have = info[name]
        same = have == value or (isinstance(value, (int, float)) and isinstance(have, (int, float)) and have == value)
        if not same and not isinstance(have, (dict, list)):
            changed.append(Mismatch(field=name, expected=str(value), actual=str(have), note="changed by the engine"))
    running, asked_running = effective_running(info), asked.max_running_requests
    if running is not None and asked_running is not None and running < asked_running:
        changed.append(
            Mismatch(
                field="max_running_requests",
                expected=str(asked_running),
                actual=str(running),
                note="throttled by the engine: the KV pool is too small",
            )
        )
    return tuple(changed)
