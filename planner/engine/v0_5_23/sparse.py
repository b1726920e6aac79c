"""DeepSeek sparse attention (DSA): backends, page size and KV type (overrides.py:491-760, deepseek_v2.py)."""

from __future__ import annotations

from typing import Any

from planner.engine.facts import ModelFacts
from planner.engine.state import State
from planner.engine.v0_5_23.view import attention_unset

__all__ = ["dsa_defaults", "dsa_overrides"]


def dsa_overrides(s: State) -> dict[str, Any]:
    """Declared defaults of a model with sparse attention."""
    where = "arg_groups/model_overrides/deepseek_v2.py:20"
    changes: dict[str, Any] = {}
    kpool = int((s.model.config.get("index_kpool") if s.model else None) or 1)
    if s.dcp_size > 1:
        if s.enable_hisparse or s.enable_hierarchical_cache:
            s.value_error("DSA DCP does not support HiSparse or HiCache.", where)
        if s.disaggregation_mode != "null":
            s.value_error("DSA DCP does not support PD disaggregation.", where)
        if s.speculative_eagle_topk not in (None, 1):
            s.value_error("DSA DCP requires --speculative-eagle-topk 1.", where)
        for name in ("dsa_prefill_backend", "dsa_decode_backend"):
            if s.values[name] is None:
                changes[name] = "trtllm"
        if s.dcp_replicate_q_proj is None and s.dcp_comm_backend in ("a2a", "fi_a2a"):
            changes["dcp_replicate_q_proj"] = True
        if kpool > 1:
            s.value_error(f"--dcp-size > 1 is not supported for DSA with index_kpool={kpool}", where)
    if attention_unset(s):
        changes["attention_backend"] = "dsa"
    if s.enable_prefill_cp:
        attn_dp = s.attn_dp_size * s.dp_size
        changes |= {"attn_dp_size": attn_dp, "dp_size": 1}
        if s.cp_strategy == "zigzag":
            changes |= {"moe_dense_tp_size": 1, "moe_a2a_backend": "deepep", "ep_size": s.tp_size}
        s.require(
            s.tp_size <= 8,
            "Context parallel only supports single machine (tp_size <= 8). Cross-machine CP has precision issues.",
            where,
        )
        own = s.cp_strategy == "interleave" and s.attn_cp_size > 1
        changes["attn_cp_size"] = s.attn_cp_size if own else s.tp_size // attn_dp
    changes["page_size"] = 64 * kpool
    return changes


def dsa_defaults(s: State, model: ModelFacts) -> None:
    """KV type, then the two DSA backends."""
    where = "arg_groups/overrides.py:491"
    if s.enable_prefill_cp:
        s.set_graph("context parallelism", "arg_groups/model_hook.py:140", "prefill", backend="disabled")
    sinks = bool(model.config.get("learnable_sink"))
    kv = s.kv_cache_dtype
    if sinks and kv not in ("auto", "bf16", "bfloat16"):
        s.value_error(f"Learnable DSA attention sinks require a bfloat16 KV cache; got kv_cache_dtype={kv}.", where)
    if kv == "auto":
        kv = "fp8_e4m3" if s.platform.major >= 10 and not sinks else "bfloat16"
    if kv == "bf16":
        kv = "bfloat16"
    s.require(
        kv in ("bfloat16", "fp8_e4m3"),
        "DeepSeek DSA only supports bf16/bfloat16 or fp8_e4m3 kv_cache_dtype",
        where,
    )
    s.set("sparse attention: FP8 from sm_100 on", where, kv_cache_dtype=kv)
    _backends(s, model, kv, sinks)
    if s.enable_prefill_cp:
        s.require(
            s.disaggregation_mode != "decode",
            "CP is only supported for prefill when PD disaggregation, please remove --enable-prefill-cp.",
            "arg_groups/model_hook.py:140",
        )


def _backends(s: State, model: ModelFacts, kv: str, sinks: bool) -> None:
    where = "arg_groups/overrides.py:601"
    blackwell = s.platform.major >= 10
    if sinks:
        prefill = decode = "flashmla_sparse"
    elif model.architecture == "GlmMoeDsaForCausalLM" and s.platform.sm120 and kv == "fp8_e4m3":
        prefill = decode = "flashinfer_sparse_mla"
    elif s.enable_hisparse:
        prefill = decode = "flashmla_kv" if kv == "fp8_e4m3" else "flashmla_sparse"
    elif kv == "fp8_e4m3":
        prefill = decode = "trtllm" if blackwell else "flashmla_kv"
    else:
        prefill, decode = "flashmla_sparse", "trtllm" if blackwell else "fa3"
    if s.dsa_prefill_backend is None:
        s.set("by KV type and GPU", where, dsa_prefill_backend=prefill)
    if s.dsa_decode_backend is None:
        s.set("by KV type and GPU", where, dsa_decode_backend=decode)
    if sinks or (model.architecture == "GlmMoeDsaForCausalLM" and s.platform.sm120 and kv == "fp8_e4m3"):
        return
    chosen = {s.dsa_prefill_backend, s.dsa_decode_backend}
    if "triton" in chosen:
        s.value_error(
            "The triton DSA backend is only supported on ROCm/HIP. Pick an alternative DSA backend for CUDA "
            "(flashmla_kv on Hopper, trtllm on Blackwell).",
            "arg_groups/overrides.py:550",
        )
    if kv == "fp8_e4m3" and "tilelang" in chosen and chosen != {"tilelang"}:
        s.value_error(
            "CUDA TileLang FP8 KV requires both DSA backends to be tilelang; raw and scaled FP8 KV layouts cannot be "
            "mixed.",
            "arg_groups/overrides.py:550",
        )
