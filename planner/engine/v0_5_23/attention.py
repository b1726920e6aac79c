"""Attention backend, page size and KV type (attention_hook.py, overrides.py:1093-1341, kv_cache_hook.py)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.default_backend import default_attention_backend
from planner.engine.v0_5_23.view import attention_backends, uses_mla

__all__ = ["backend_compatibility", "deterministic", "multi_item_scoring", "page_size_default", "sampling_backend"]

_OVERRIDES = "arg_groups/overrides.py"
_DETERMINISTIC = ("ascend", "fa3", "fa4", "flashinfer", "intel_xpu", "triton")
_RADIX_DETERMINISTIC = ("ascend", "fa3", "fa4", "triton")
_ABSORBED_MLA = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
    }
)


def sampling_backend(s: State) -> None:
    if s.sampling_backend is None:
        s.set("default with FlashInfer", f"{_OVERRIDES}:1019", sampling_backend="flashinfer")


def deterministic(s: State) -> None:
    """Deterministic inference: sampling, attention backend, radix cache, all-reduce."""
    where = "arg_groups/attention_hook.py:580"
    because = "deterministic inference"
    if s.rl_on_policy_target is not None:
        s.set("--rl-on-policy-target", where, enable_deterministic_inference=True)
    if not s.enable_deterministic_inference:
        return
    s.set(because, where, enable_aiter_allreduce_fusion=False)
    if s.flashinfer_allreduce_fusion_backend is not None:
        s.set(because, f"{_OVERRIDES}:1062", flashinfer_allreduce_fusion_backend=None)
    if s.sampling_backend != "ascend":
        s.set(because, f"{_OVERRIDES}:1030", sampling_backend="pytorch")
    architecture = s.model.architecture if s.model else ""
    deepseek = architecture in _ABSORBED_MLA
    if s.attention_backend is None:
        backend = "fa3"
        if s.platform.sm100 or s.platform.sm120:
            backend = "triton" if deepseek else "flashinfer"
        s.set(because, f"{_OVERRIDES}:1093", attention_backend=backend)
    elif s.attention_backend not in _DETERMINISTIC:
        s.value_error(
            f"Currently only {list(_DETERMINISTIC)} attention backends are supported for deterministic inference, but "
            f"you explicitly specified '{s.attention_backend}'.",
            f"{_OVERRIDES}:1093",
        )
    if deepseek or architecture == "Glm5NextForConditionalGeneration":
        if s.attention_backend not in _RADIX_DETERMINISTIC:
            s.value_error(
                f"Currently only {list(_RADIX_DETERMINISTIC)} attention backends are supported for deterministic "
                f"inference with absorbed-MLA models. But you're using {s.attention_backend}.",
                where,
            )
        if s.attention_backend == "fa4" and not s.platform.sm100:
            s.value_error(
                "Deterministic inference with absorbed-MLA models on the fa4 attention backend requires SM100/SM110",
                where,
            )
    if s.attention_backend not in _RADIX_DETERMINISTIC:
        s.set(f"{because} with {s.attention_backend}", where, disable_radix_cache=True)
    if s.tp_size > 1:
        s.set(because, where, disable_custom_all_reduce=True, enable_torch_symm_mem=False)
        s.notes.append("deterministic inference sets NCCL_ALGO=allreduce:tree and pins the NCCL channels")


def nvfp4_prefill(s: State) -> None:
    where = "arg_groups/kv_cache_hook.py:34"
    asked = s.prefill_kv_cache_dequant_dtype
    if s.kv_cache_dtype != "nvfp4":
        if asked != "auto":
            s.value_error("--prefill-kv-cache-dequant-dtype applies only with --kv-cache-dtype=nvfp4.", where)
        return
    backends = {"fp8_e4m3": "flashinfer", "nvfp4": "trtllm_mha"}
    dtype = asked
    if asked == "auto":
        explicit = s.prefill_attention_backend or s.attention_backend
        by_backend = {backend: name for name, backend in backends.items()}
        if explicit in by_backend:
            dtype = by_backend[explicit]
        elif explicit is not None:
            s.value_error(
                f"NVFP4 prefill supports an FP8 E4M3 workspace or native NVFP4, but backend {explicit!r} provides "
                "neither.",
                where,
            )
        else:
            dtype = "nvfp4" if s.platform.sm100 else "fp8_e4m3"
    if dtype == "nvfp4" and not s.platform.sm100:
        s.value_error(
            "Native NVFP4 prefill currently requires SM100; use --prefill-kv-cache-dequant-dtype=fp8_e4m3 on this "
            "platform.",
            where,
        )
    target = backends[dtype]
    if s.prefill_attention_backend not in (None, target):
        s.value_error(
            f"--prefill-kv-cache-dequant-dtype={dtype} requires prefill backend {target!r}, but "
            f"--prefill-attention-backend={s.prefill_attention_backend!r} was set. Remove the backend option and "
            "select the KV dtype only.",
            where,
        )
    if s.decode_attention_backend not in (None, "trtllm_mha"):
        s.value_error(
            "NVFP4 decode requires --decode-attention-backend=trtllm_mha; got "
            f"{s.decode_attention_backend!r}. Remove the backend option; NVFP4 selects the supported decode "
            "implementation automatically.",
            where,
        )
    s.set("NVFP4 KV", where, prefill_attention_backend=target, decode_attention_backend="trtllm_mha")
    if asked == "auto":
        s.set("NVFP4 KV", where, prefill_kv_cache_dequant_dtype=dtype)


def backend_compatibility(s: State) -> None:
    """Fills the backend, then forces page size and checks what the backend needs."""
    if s.prefill_attention_backend is not None and s.prefill_attention_backend == s.decode_attention_backend:
        s.set("prefill and decode agree", f"{_OVERRIDES}:1127", attention_backend=s.prefill_attention_backend)
    elif s.attention_backend is None:
        s.set(
            f"default of {s.platform.id} for {'MLA' if uses_mla(s) else 'this attention'}",
            "arg_groups/model_override_base.py:277",
            attention_backend=default_attention_backend(s, s.model),
        )
    where = "arg_groups/attention_hook.py:110"
    if s.attention_backend in ("torch_native", "flex_attention"):
        for phase in ("decode", "prefill"):
            s.set_graph(f"{s.attention_backend} has no graphs", where, phase, backend="disabled")
        if s.attention_backend == "flex_attention":
            s.require(
                s.speculative_algorithm is None,
                "Speculative decoding is currently not supported with Flex Attention backend",
                where,
            )
    _page_constraints(s)
    _mla_checks(s)
    _trtllm_mha_checks(s)
    if s.attention_backend == "fa3" and s.kv_cache_dtype == "fp8_e5m2":
        s.set("fa3 has no fp8_e5m2", f"{_OVERRIDES}:1263", attention_backend="triton")
    all_backends = (s.attention_backend, s.decode_attention_backend, s.prefill_attention_backend)
    if "fa4" in all_backends and not uses_mla(s) and s.platform.sm100 and (s.speculative_eagle_topk or 0) <= 1:
        s.set("fa4 on sm_100 and sm_103", f"{_OVERRIDES}:1274", page_size=128)


def _page_constraints(s: State) -> None:
    where = f"{_OVERRIDES}:1144"
    main, decode, prefill = s.attention_backend, s.decode_attention_backend, s.prefill_attention_backend
    page, because = s.page_size, ""
    if "flashmla" in (main, decode):
        page, because = 64, "flashmla"
    if "trtllm_mla" in (main, decode) and page not in (32, 64):
        page, because = 64, "trtllm_mla takes pages of 32 or 64"
    if "cutedsl_mla" in (main, decode, prefill) and page not in (32, 64):
        page, because = 64, "cutedsl_mla takes pages of 32 or 64"
    draft = s.speculative_draft_attention_backend
    if "trtllm_mha" in (main, decode, prefill, draft) and page not in (16, 32, 64, 128):
        page, because = 64, "trtllm_mha takes pages of 16, 32, 64 or 128"
    if "hpc_ops" in (main, decode, prefill) and page != 64:
        page, because = 64, "hpc_ops"
    if page != s.page_size:
        s.set(because, where, page_size=page)


def _mla_checks(s: State) -> None:
    main, decode, prefill = s.attention_backend, s.decode_attention_backend, s.prefill_attention_backend
    where = f"{_OVERRIDES}:1204"
    if "trtllm_mla" in (main, decode):
        if not s.platform.blackwell:
            s.value_error(
                "TRTLLM MLA backend is only supported on Blackwell GPUs (SM100/SM12x). Please use a different backend.",
                where,
            )
        if s.kv_cache_dtype not in ("fp8_e4m3", "bf16", "auto"):
            s.value_error("TensorRT-LLM MLA backend only supports kv-cache-dtype of fp8_e4m3, bf16, or auto.", where)
    if "cutedsl_mla" in (main, decode, prefill):
        where = f"{_OVERRIDES}:1233"
        s.require(prefill != "cutedsl_mla", "CuteDSL MLA only supports decoding for now", where)
        if not s.platform.sm100:
            s.value_error(
                "CuteDSL MLA backend is only supported on Blackwell GPUs (SM100). Please use a different backend.",
                where,
            )
        if s.kv_cache_dtype not in ("fp8_e4m3", "bf16", "bfloat16", "auto"):
            s.value_error("CuteDSL MLA backend only supports kv-cache-dtype of fp8_e4m3, bf16, or auto.", where)
        if prefill is None:
            s.set("cutedsl_mla decodes only", where, prefill_attention_backend="trtllm_mla")


def _trtllm_mha_checks(s: State) -> None:
    where = "arg_groups/attention_hook.py:195"
    prefill, decode = attention_backends(s)
    supported = s.platform.sm90 or s.platform.sm100 or s.platform.sm120
    if "trtllm_mha" not in (prefill, decode):
        return
    if prefill == "trtllm_mha" and not supported:
        s.value_error(
            "TRTLLM MHA backend for prefill requires Hopper (SM90), Blackwell (SM100), or SM120 GPUs. Please use a "
            "different prefill backend.",
            where,
        )
    if prefill == "trtllm_mha" and s.platform.sm120 and s.kv_cache_dtype == "fp8_e4m3":
        s.value_error("TRTLLM FMHAv2 prefill on SM120 does not support fp8_e4m3 KV cache or skip-softmax.", where)
    if decode == "trtllm_mha" and not supported:
        s.value_error(
            "TRTLLM MHA backend for decode is only supported on Hopper (SM90), Blackwell (SM100) and (SM120) GPUs. "
            "Please use a different decode backend.",
            where,
        )
    if prefill == "trtllm_mha" and not s.platform.sm100 and s.attn_cp_size > 1:
        s.value_error(
            "Prefill context parallelism with the TRTLLM MHA prefill backend requires SM100 (trtllm-gen context "
            "kernel): the SM90/SM120 fmha_v2 prefill path does not implement CP shard masking.",
            where,
        )


def page_size_default(s: State) -> None:
    if s.page_size is None:
        s.set("default", f"{_OVERRIDES}:1341", page_size=1)


def multi_item_scoring(s: State) -> None:
    if not s.enable_mis:
        return
    where = "arg_groups/attention_hook.py:526"
    for phase in ("decode", "prefill"):
        s.set_graph("multi-item scoring", where, phase, backend="disabled")
    s.set("multi-item scoring", where, disable_radix_cache=True, chunked_prefill_size=-1)
    prefill, decode = attention_backends(s)
    s.require(
        prefill == "flashinfer" and decode == "flashinfer",
        "Multi-item scoring requires flashinfer attention backend for custom attention mask support. Please set "
        f"--attention-backend flashinfer when using --enable-mis. Current backends: prefill={prefill}, "
        f"decode={decode}",
        where,
    )
