"""Memory tiers, graph batch sizes and the memory fraction (memory_hook.py)."""

from __future__ import annotations

from planner.engine.facts import ModelFacts
from planner.engine.state import State
from planner.engine.v0_5_23.graphs import decode_batch_sizes, prefill_batch_sizes
from planner.engine.v0_5_23.view import attn_dp_enabled, is_multimodal, uses_mla

__all__ = ["gpu_memory_settings", "offload_compatibility", "tier", "vlm_factor"]

_HOOK = "arg_groups/memory_hook.py"
_VISION_DEFAULTS = {
    "KimiK25ForConditionalGeneration": (27, 1152),
    "KimiVLForConditionalGeneration": (27, 1152),
    "KimiK3ForConditionalGeneration": (27, 1152),
}
"""Layers and width of the vision tower where config.json leaves them to the model class (0.5.23 srt/configs)."""


def offload_compatibility(s: State) -> None:
    where = f"{_HOOK}:28"
    if s.ple_offload_embedding and (s.cpu_offload_gb > 0 or s.offload_group_size > 0):
        s.value_error(
            "--ple-offload-embedding cannot be combined with --cpu-offload-gb or --offload-group-size: generic layer "
            "offload would stage the pinned PLE embedding back to the device.",
            where,
        )
    if s.ple_offload_backend == "file" and s.ple_offload_embedding is False:
        s.value_error(
            "--ple-offload-backend file requires --ple-offload-embedding: the file-backed table is the offloaded "
            "table.",
            where,
        )


def tier(memory_mib: int, tp_size: int) -> tuple[int, int]:
    """Chunked prefill size and largest decode graph batch by device memory (memory_hook.py:90-175)."""
    wide = tp_size >= 4
    if memory_mib < 20 * 1024:
        return 2048, 8
    if memory_mib < 35 * 1024:
        return 4096, 160 if wide else 48
    if memory_mib < 60 * 1024:
        return 4096, 160 if wide else 32
    if memory_mib < 160 * 1024:
        return 8192, 512 if wide else 256
    return 16384, 512


def gpu_memory_settings(s: State) -> None:
    where = f"{_HOOK}:47"
    memory = s.platform.memory_mib
    chunk, max_bs = tier(memory, s.tp_size)
    because = f"default for {memory} MiB of device memory"
    if s.chunked_prefill_size is None:
        s.set(because, where, chunked_prefill_size=chunk)
    decode = s.graph("decode")
    if decode["max_bs"] is None:
        if s.max_running_requests is not None and max_bs > s.max_running_requests:
            s.set_graph("no more than max_running_requests", f"{_HOOK}:183", "decode", max_bs=s.max_running_requests)
        else:
            s.set_graph(because, where, "decode", max_bs=max_bs)
    decode = s.graph("decode")
    if decode["bs"] is None:
        sizes = decode_batch_sizes(
            decode["max_bs"],
            speculative=s.speculative_algorithm is not None,
            padding=not s.disable_cuda_graph_padding,
        )
        s.set_graph("ladder up to the largest batch", "arg_groups/cuda_graph_hook.py:500", "decode", bs=sizes)
    else:
        s.set_graph("largest of the given batch sizes", f"{_HOOK}:205", "decode", max_bs=max(decode["bs"]))
    _prefill_sizes(s)
    if s.mem_fraction_static is None:
        _memory_fraction(s, memory)
    if s.enable_symm_mem and "SGLANG_SYMM_MEM_PREALLOC_GB_SIZE" not in s.env:
        s.env["SGLANG_SYMM_MEM_PREALLOC_GB_SIZE"] = "4"
        s.notes.append("--enable-symm-mem sets SGLANG_SYMM_MEM_PREALLOC_GB_SIZE=4")


def _prefill_sizes(s: State) -> None:
    where = f"{_HOOK}:225"
    prefill = s.graph("prefill")
    if prefill["max_bs"] is None:
        largest = min(8192, s.chunked_prefill_size) if uses_mla(s) else s.chunked_prefill_size
        if s.pp_size > 1 and prefill["backend"] == "breakable" and ("prefill", "bs") not in s.locked:
            largest = min(largest, 8192)
        if s.max_total_tokens is not None:
            largest = min(largest, s.max_total_tokens)
        if "llama-2" in s.model_path.lower():
            largest = min(largest, 4096)
        s.set_graph("chunk of prefill (8192 at most with MLA)", where, "prefill", max_bs=largest)
    prefill = s.graph("prefill")
    if prefill["bs"] is None:
        sizes = prefill_batch_sizes(prefill["max_bs"])
        s.set_graph("ladder up to the largest", "arg_groups/cuda_graph_hook.py:480", "prefill", bs=sizes)


def _memory_fraction(s: State, memory: int) -> None:
    where = f"{_HOOK}:276"
    decode = s.graph("decode")
    if s.disaggregation_mode == "decode":
        running = s.max_running_requests or decode["max_bs"] or 1
        tokens = max(running * (s.speculative_num_draft_tokens or 1), 2048)
    elif s.chunked_prefill_size > 0:
        tokens = max(s.chunked_prefill_size, 2048)
    else:
        tokens = max(s.max_prefill_tokens, 2048)
    reserved = 512 + tokens * 1.5 + s.tp_size * s.pp_size / 8 * 1024 + _graph_reserve(s)
    if memory > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    if s.disaggregation_mode != "prefill" and decode["backend"] != "disabled" and s.moe_a2a_backend == "deepep":
        reserved += 2 * 1024
    fraction = round((memory - reserved) / memory, 3)
    because = f"{reserved:.0f} MiB reserved for activations and graphs"
    if (
        s.model is not None
        and is_multimodal(s, s.model)
        and not s.language_only
        and not s.language_model_only
        and s.disaggregation_mode != "decode"
    ):
        factor = vlm_factor(s.model)
        if factor is not None:
            fraction *= factor
            because += f", times {factor:.4f} for the vision tower"
    s.set(because, where, mem_fraction_static=fraction)


def _graph_reserve(s: State) -> float:
    """MiB reserved for graphs (memory_hook.py:357)."""
    decode, prefill = s.graph("decode"), s.graph("prefill")
    reserved = 0.0
    if s.disaggregation_mode != "prefill":
        if decode["backend"] != "disabled":
            reserved += decode["max_bs"] * 2
        if attn_dp_enabled(s):
            reserved += decode["max_bs"] * s.attn_dp_size * 3
            if decode["max_bs"] > 300:
                reserved += decode["max_bs"] * s.attn_dp_size * 1.5
    if s.disaggregation_mode != "decode" and prefill["backend"] != "disabled":
        reserved += 1.5 * 1024 if uses_mla(s) else len(prefill["bs"]) * 8
        if prefill["backend"] == "breakable" and s.moe_a2a_backend == "deepep":
            reserved += 1024
    return reserved


def vlm_factor(model: ModelFacts) -> float | None:
    """Factor on the memory fraction by the size of the vision tower (memory_hook.py:417); None without one."""
    if model.vision is None:
        return None
    layers, width = _VISION_DEFAULTS.get(model.architecture, (24, 1024))
    layers = model.vision.get("num_hidden_layers", layers)
    width = model.vision.get("hidden_size", width)
    ratio = float(layers) * float(width) ** 2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (ratio - 1.0)))
