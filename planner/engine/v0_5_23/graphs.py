"""CUDA graph settings: what was asked, what is switched off, which batch sizes are captured (cuda_graph_hook.py)."""

from __future__ import annotations

import json
from typing import Any

from planner.engine.state import State
from planner.engine.v0_5_23.view import attention_backends, is_multimodal

__all__ = [
    "compatibility",
    "configure",
    "decode_batch_sizes",
    "deepseek_trtllm_mla",
    "finalize_max_context",
    "prefill_batch_sizes",
]

_HOOK = "arg_groups/cuda_graph_hook.py"
_KEYS = (
    "backend",
    "max_bs",
    "bs",
    "tc_compiler",
    "max_context_size",
    "full_prefill_max_req",
    "full_prefill_prefix_chunk_tokens",
    "max_seq_len",
)
_BREAKABLE_MULTIMODAL = frozenset(
    {
        "Cohere2VisionForConditionalGeneration",
        "Glm5NextForConditionalGeneration",
        "InternS2MobiusForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "MiniMaxM3SparseForCausalLM",
        "MiniMaxM3SparseForConditionalGeneration",
        "MuseGlimmerForConditionalGeneration",
        "MuseSparkForConditionalGeneration",
        "PaddleOCRVLForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
    }
)
"""Multimodal classes that may keep breakable prefill graphs (0.5.23 srt/configs/model_config.py)."""


def _phase(backend: str) -> dict[str, Any]:
    return dict.fromkeys(_KEYS, None) | {"backend": backend, "tc_compiler": "eager"}


def configure(s: State) -> None:
    """Merges the flags, weak to strong: whole off, phase off, flags of a phase, JSON; then drops what cannot run."""
    prefill_default = "breakable" if s.platform.cuda_visible and not s.platform.hip else "disabled"
    explicit = s.cuda_graph_config
    if isinstance(explicit, str):
        explicit = json.loads(explicit)
    s.values["cuda_graph_config"] = {"decode": _phase("full"), "prefill": _phase(prefill_default)}
    s.values["cuda_graph_backend_prefill_asked"] = s.cuda_graph_backend_prefill
    asked = {
        (phase, key): s.values.get(f"cuda_graph_{key}_{phase}")
        for phase in ("decode", "prefill")
        for key in ("backend", "max_bs", "bs")
    }
    asked["prefill", "max_seq_len"] = s.cuda_graph_max_seq_len_prefill
    asked["prefill", "max_context_size"] = s.cuda_graph_prefill_max_context
    for phase in ("decode", "prefill"):
        for key in ("backend", "max_bs", "bs"):
            s.values[f"cuda_graph_{key}_{phase}"] = None
    where = f"{_HOOK}:32"
    s.set_graph("default", where, "decode", backend="full")
    s.set_graph("default where CUDA is visible", where, "prefill", backend=prefill_default)

    def lock(phase: str, key: str, value: Any, because: str) -> None:
        s.set_graph(because, where, phase, **{key: list(value) if isinstance(value, tuple) else value})
        s.locked.add((phase, key))

    if s.disable_cuda_graph:
        lock("decode", "backend", "disabled", "--disable-cuda-graph")
        lock("prefill", "backend", "disabled", "--disable-cuda-graph")
    if s.disable_prefill_cuda_graph:
        lock("prefill", "backend", "disabled", "--disable-prefill-cuda-graph")
    if s.disable_decode_cuda_graph:
        lock("decode", "backend", "disabled", "--disable-decode-cuda-graph")
    for (phase, key), value in asked.items():
        if value is not None:
            lock(phase, key, value, "asked for")
    for phase, settings in (explicit or {}).items():
        if isinstance(settings, dict):
            for key, value in settings.items():
                lock(phase, key, value, "--cuda-graph-config")
    compatibility(s)
    _align_for_deepep(s)
    _disaggregation_roles(s)
    for phase in ("decode", "prefill"):
        backend = s.graph(phase)["backend"]
        if backend not in ("full", "breakable", "disabled"):
            s.value_error(
                f"--cuda-graph-config[{phase}].backend={backend!r} not allowed; "
                "allowed: ('full', 'breakable', 'disabled')",
                f"{_HOOK}:410",
            )


def compatibility(s: State) -> None:
    """Breakable prefill graphs are dropped where they are not supported, unless they were asked for."""
    if ("prefill", "backend") in s.locked or s.graph("prefill")["backend"] != "breakable":
        return
    because = None
    if s.pp_size > 1:
        because = "pipeline parallelism"
    elif s.attn_cp_size > 1:
        because = "context parallelism"
    elif s.dcp_size > 1:
        because = "decode context parallelism"
    elif s.enable_two_batch_overlap:
        because = "two-batch overlap"
    elif s.moe_a2a_backend not in ("none", "deepep", "megamoe", "flashinfer"):
        because = f"all-to-all backend {s.moe_a2a_backend}"
    elif s.model is not None:
        linear = s.model.text.get("linear_attn_config")
        if isinstance(linear, dict) and linear.get("kda_layers"):
            because = "KDA linear attention"
        elif s.model.architecture.startswith("DeepseekV4ForCausalLM"):
            because = "DeepSeek-V4"
        elif is_multimodal(s, s.model) and s.model.architecture not in _BREAKABLE_MULTIMODAL:
            because = "multimodal model"
    if because:
        s.set_graph(f"prefill graphs are off with: {because}", f"{_HOOK}:170", "prefill", backend="disabled")


def _align_for_deepep(s: State) -> None:
    prefill = s.graph("prefill")
    if s.moe_a2a_backend != "deepep" or prefill["backend"] != "breakable":
        return
    sizes = prefill["bs"] or prefill_batch_sizes(prefill["max_bs"] or 2048)
    aligned = sorted({(size + 7) // 8 * 8 for size in sizes})
    if aligned != sorted(sizes):
        s.set_graph("DeepEP needs multiples of 8", f"{_HOOK}:315", "prefill", bs=aligned, max_bs=aligned[-1])


def _disaggregation_roles(s: State) -> None:
    off = {"prefill": "decode", "decode": "prefill"}.get(s.disaggregation_mode)
    if off is not None and (off, "backend") not in s.locked:
        s.set_graph(f"a {s.disaggregation_mode} server runs no {off}", f"{_HOOK}:557", off, backend="disabled")


def deepseek_trtllm_mla(s: State) -> None:
    """DeepSeek-V3 on trtllm_mla runs prefill without graphs."""
    if ("prefill", "backend") in s.locked or s.graph("prefill")["backend"] == "disabled" or s.model is None:
        return
    if "DeepseekV3ForCausalLM" in s.model.architectures and attention_backends(s)[0] == "trtllm_mla":
        s.set_graph("not with trtllm_mla prefill on DeepSeek-V3", f"{_HOOK}:279", "prefill", backend="disabled")


def finalize_max_context(s: State) -> None:
    size = s.graph("prefill")["max_context_size"]
    if size is None:
        return
    where = f"{_HOOK}:423"
    if size <= 0:
        s.value_error("--cuda-graph-prefill-max-context must be a positive integer", where)
    aligned = (size + s.page_size - 1) // s.page_size * s.page_size
    if s.model is not None and aligned > (s.context_length or s.model.context_len):
        s.value_error(
            "--cuda-graph-prefill-max-context exceeds the model context length: aligned size "
            f"{aligned} > {s.context_length or s.model.context_len}",
            where,
        )
    s.set_graph("aligned to the page size", where, "prefill", max_context_size=aligned)


def prefill_batch_sizes(max_bs: int) -> list[int]:
    """Token counts that prefill graphs are captured for (cuda_graph_hook.py:480)."""
    sizes = [
        *range(4, 33, 4),
        *range(48, 257, 16),
        *range(288, 513, 32),
        *range(576, 1025, 64),
        *range(1280, 4097, 256),
        *range(4608, max_bs + 1, 512),
    ]
    return [size for size in sizes if size <= max_bs]


def decode_batch_sizes(max_bs: int, *, speculative: bool, padding: bool) -> list[int]:
    """Batch sizes that decode or verify graphs are captured for (cuda_graph_hook.py:500)."""
    if not padding:
        sizes = list(range(1, max_bs + 1))
    elif speculative:
        sizes = [
            *range(1, 9),
            *range(10, 33, 2),
            *range(40, 65, 4),
            *range(72, 257, 8),
            *range(272, max_bs + 1, 16),
        ]
    else:
        sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), *range(512, max_bs + 1, 32)]
    sizes = [size for size in sizes if size <= max_bs]
    return sizes if max_bs in sizes else [*sizes, max_bs]
