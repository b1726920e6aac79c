"""Piecewise graphs, memory tiers, graph batch sizes and the memory fraction (server_args.py:1330-1610)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.graphs import decode_batch_sizes, prefill_batch_sizes
from planner.engine.v0_5_23.memory import vlm_factor

__all__ = ["gpu_memory_settings", "is_multimodal", "piecewise_graphs", "tier"]

_NO_PIECEWISE = frozenset(
    {
        "BailingMoeV2_5ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV4ForCausalLM",
        "DeepseekV4ForCausalLMNextN",
        "GlmMoeDsaForCausalLM",
        "LLaDAModelLM",
        "Qwen3NextForCausalLM",
    }
)
_TEXT_ONLY = ("Gemma3ForConditionalGeneration", "Llama4ForConditionalGeneration", "Step3VLForConditionalGeneration")


def is_multimodal(s: State) -> bool:
    """Whether the engine serves images with this target."""
    if s.model is None:
        return False
    enabled = s.enable_multimodal
    if enabled is None:
        enabled = s.model.architecture not in _TEXT_ONLY
    return bool(enabled) and s.model.takes_media


def piecewise_graphs(s: State) -> None:
    """Prefill graphs are off where they are not supported, unless enforced."""
    where = "server_args.py:1340"
    if s.enforce_piecewise_cuda_graph:
        s.set("--enforce-piecewise-cuda-graph", where, disable_piecewise_cuda_graph=False)
        return
    model = s.model
    reasons = {
        "this model": model is not None and (model.architecture in _NO_PIECEWISE or model.is_dsa),
        "attention DP": s.enable_dp_attention,
        "torch.compile": s.enable_torch_compile,
        "pipeline parallelism": s.pp_size > 1,
        f"all-to-all backend {s.moe_a2a_backend}": s.moe_a2a_backend != "none",
        "LoRA": bool(s.lora_paths) or s.enable_lora,
        "multimodal model": is_multimodal(s),
        "GGUF": s.load_format == "gguf" or s.quantization == "gguf",
        "diffusion model": s.dllm_algorithm is not None,
        "offloading": s.cpu_offload_gb > 0 or s.enable_hierarchical_cache,
        "deterministic inference": s.enable_deterministic_inference,
        "disaggregation": s.disaggregation_mode != "null",
        "symmetric memory": s.enable_symm_mem,
        "expert distribution": s.enable_eplb or s.expert_distribution_recorder_mode is not None,
        "context parallelism": s.attn_cp_size > 1,
        "debugging": s.debug_cuda_graph,
    }
    for because, holds in reasons.items():
        if holds:
            s.set(f"prefill graphs are off with: {because}", where, disable_piecewise_cuda_graph=True)


def tier(memory_mib: int, tp_size: int) -> tuple[int, int]:
    """Chunked prefill size and largest graph batch by device memory (server_args.py:1425-1500)."""
    wide = tp_size >= 4
    if memory_mib < 20 * 1024:
        return 2048, 8
    if memory_mib < 35 * 1024:
        return 2048, 80 if wide else 24
    if memory_mib < 60 * 1024:
        return 4096, 160 if wide else 32
    if memory_mib < 160 * 1024:
        return 8192, 512 if wide else 256
    return 16384, 512


def gpu_memory_settings(s: State) -> None:
    where = "server_args.py:1425"
    memory = s.platform.memory_mib
    chunk, max_bs = tier(memory, s.tp_size)
    because = f"default for {memory} MiB of device memory"
    if s.chunked_prefill_size is None:
        s.set(because, where, chunked_prefill_size=chunk)
    if s.cuda_graph_max_bs is None:
        s.set(because, where, cuda_graph_max_bs=max_bs)
    if s.cuda_graph_bs is None:
        sizes = decode_batch_sizes(
            s.cuda_graph_max_bs,
            speculative=s.speculative_algorithm is not None,
            padding=not s.disable_cuda_graph_padding,
        )
        s.set("ladder up to the largest batch", "server_args.py:1590", cuda_graph_bs=sizes)
    else:
        s.set("largest of the given batch sizes", "server_args.py:1495", cuda_graph_max_bs=max(s.cuda_graph_bs))
    mla = s.model is not None and s.model.is_mla
    if s.piecewise_cuda_graph_max_tokens is None:
        largest = 2048 if mla else s.chunked_prefill_size
        if s.max_total_tokens is not None:
            largest = min(largest, s.max_total_tokens)
        if "llama-2" in s.model_path.lower():
            largest = min(largest, 4096)
        s.set("chunk of prefill (2048 with MLA)", "server_args.py:1515", piecewise_cuda_graph_max_tokens=largest)
    if s.piecewise_cuda_graph_tokens is None:
        sizes = prefill_batch_sizes(s.piecewise_cuda_graph_max_tokens)
        s.set("ladder up to the largest", "server_args.py:1610", piecewise_cuda_graph_tokens=sizes)
    if s.mem_fraction_static is None:
        _memory_fraction(s, memory, mla=mla)
    if s.enable_symm_mem and "SGLANG_SYMM_MEM_PREALLOC_GB_SIZE" not in s.env:
        s.env["SGLANG_SYMM_MEM_PREALLOC_GB_SIZE"] = "4"
        s.notes.append("--enable-symm-mem sets SGLANG_SYMM_MEM_PREALLOC_GB_SIZE=4")


def _memory_fraction(s: State, memory: int, *, mla: bool) -> None:
    where = "server_args.py:1540"
    tokens = s.chunked_prefill_size if s.chunked_prefill_size > 0 else s.max_prefill_tokens
    reserved = 512 + max(tokens, 2048) * 1.5 + s.cuda_graph_max_bs * 2 + s.tp_size * s.pp_size / 8 * 1024
    if s.enable_dp_attention:
        reserved += s.cuda_graph_max_bs * s.dp_size * 3
        if s.cuda_graph_max_bs > 300:
            reserved += s.cuda_graph_max_bs * s.dp_size * 1.5
    if not s.disable_piecewise_cuda_graph:
        reserved += 1.5 * 1024 if mla else len(s.piecewise_cuda_graph_tokens) * 8
    if memory > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    if s.speculative_algorithm == "STANDALONE":
        reserved += 6 * 1024
    elif s.speculative_algorithm not in (None, "NGRAM"):
        reserved += 4 * 1024
    fraction = round((memory - reserved) / memory, 3)
    because = f"{reserved:.0f} MiB reserved for activations, graphs and the draft"
    if s.model is not None and is_multimodal(s) and not s.language_only:
        factor = vlm_factor(s.model)
        if factor is not None:
            fraction *= factor
            because += f", times {factor:.4f} for the vision tower"
    s.set(because, where, mem_fraction_static=fraction)
