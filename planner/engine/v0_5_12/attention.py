"""Attention backend, page size, KV type, deterministic inference, host cache (server_args.py:2530-3100)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_12.view import attention_backends, default_attention_backend

__all__ = ["backend_compatibility", "deterministic", "fp4_compatibility", "hicache", "multi_item_scoring"]

_DETERMINISTIC = ("flashinfer", "fa3", "triton")
_RADIX = ("fa3", "triton")
_DEEPSEEK = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "GlmMoeDsaForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
    }
)


def deterministic(s: State) -> None:
    where = "server_args.py:4200"
    because = "deterministic inference"
    if s.rl_on_policy_target is not None:
        s.set("--rl-on-policy-target", where, enable_deterministic_inference=True)
    if not s.enable_deterministic_inference:
        return
    s.set(
        because,
        where,
        enable_aiter_allreduce_fusion=False,
        enable_flashinfer_allreduce_fusion=False,
        sampling_backend="pytorch",
    )
    deepseek = s.model is not None and s.model.architecture in _DEEPSEEK
    if s.attention_backend is None:
        backend = "fa3"
        if s.platform.sm100 or s.platform.sm120:
            backend = "triton" if deepseek else "flashinfer"
        s.set(because, where, attention_backend=backend)
    elif s.attention_backend not in _DETERMINISTIC:
        s.value_error(
            f"Currently only {list(_DETERMINISTIC)} attention backends are supported for deterministic inference, but "
            f"you explicitly specified '{s.attention_backend}'.",
            where,
        )
    if deepseek and s.attention_backend not in _RADIX:
        s.value_error(
            f"Currently only {list(_RADIX)} attention backends are supported for deterministic inference with "
            f"DeepSeek models. But you're using {s.attention_backend}.",
            where,
        )
    if s.attention_backend not in _RADIX:
        s.set(f"{because} with {s.attention_backend}", where, disable_radix_cache=True)
    if s.tp_size > 1:
        s.set(because, where, disable_custom_all_reduce=True)
        s.notes.append("deterministic inference sets NCCL_ALGO=allreduce:tree")


def backend_compatibility(s: State) -> None:
    where = "server_args.py:2660"
    if s.prefill_attention_backend is not None and s.prefill_attention_backend == s.decode_attention_backend:
        s.set("prefill and decode agree", where, attention_backend=s.prefill_attention_backend)
    if s.attention_backend is None:
        s.set(
            f"default of {s.platform.id}",
            "server_args.py:2530",
            attention_backend=default_attention_backend(s, s.model),
        )
    if s.attention_backend in ("torch_native", "flex_attention"):
        s.set(f"{s.attention_backend} has no graphs", where, disable_cuda_graph=True)
        if s.attention_backend == "flex_attention":
            s.require(
                s.speculative_algorithm is None,
                "Speculative decoding is currently not supported with Flex Attention backend",
                where,
            )
    main, decode = s.attention_backend, s.decode_attention_backend
    if "flashmla" in (main, decode):
        s.set("flashmla", "server_args.py:2705", page_size=64)
    if "cutlass_mla" in (main, decode):
        s.set("cutlass_mla", "server_args.py:2711", page_size=128)
    _trtllm_mla(s)
    _trtllm_mha(s)
    if s.attention_backend == "fa3" and s.kv_cache_dtype == "fp8_e5m2":
        s.set("fa3 has no fp8_e5m2", where, attention_backend="triton")
    mla = s.model is not None and s.model.is_mla
    if s.prefill_attention_backend == "fa4" and not mla and s.platform.sm100:
        s.set("fa4 on sm_100 and sm_103", where, page_size=128)


def _trtllm_mla(s: State) -> None:
    where = "server_args.py:2720"
    main, decode = s.attention_backend, s.decode_attention_backend
    if "trtllm_mla" in (main, decode):
        if not s.platform.blackwell:
            s.value_error(
                "TRTLLM MLA backend is only supported on Blackwell GPUs (SM100/SM12x). Please use a different backend.",
                where,
            )
        if s.page_size not in (32, 64):
            s.set("trtllm_mla takes pages of 32 or 64", where, page_size=64)
        if s.kv_cache_dtype not in ("fp8_e4m3", "fp4_e2m1", "bf16", "auto"):
            s.value_error(
                "TensorRT-LLM MLA backend only supports kv-cache-dtype of fp8_e4m3, fp4_e2m1, bf16, or auto.",
                "server_args.py:2730",
            )
    if "tokenspeed_mla" in (main, decode):
        if not s.platform.blackwell:
            s.value_error("tokenspeed_mla backend is only supported on Blackwell GPUs (SM100/SM12x).", where)
        if s.page_size not in (32, 64):
            s.set("tokenspeed_mla takes pages of 32 or 64", where, page_size=64)
        if s.kv_cache_dtype != "fp8_e4m3":
            s.value_error(f"tokenspeed_mla backend requires kv-cache-dtype=fp8_e4m3, got {s.kv_cache_dtype}.", where)


def _trtllm_mha(s: State) -> None:
    where = "server_args.py:2755"
    if "trtllm_mha" not in (s.attention_backend, s.decode_attention_backend, s.prefill_attention_backend):
        return
    prefill, decode = attention_backends(s)
    if prefill == "trtllm_mha" and not s.platform.sm100:
        s.value_error(
            "TRTLLM MHA backend for prefill is only supported on Blackwell GPUs (SM100). Please use a different "
            "prefill backend.",
            where,
        )
    if decode == "trtllm_mha" and not (s.platform.sm90 or s.platform.sm100 or s.platform.sm120):
        s.value_error(
            "TRTLLM MHA backend for decode is only supported on Hopper (SM90), Blackwell (SM100) and (SM120) GPUs. "
            "Please use a different decode backend.",
            where,
        )
    if s.page_size not in (16, 32, 64):
        s.set("trtllm_mha takes pages of 16, 32 or 64", where, page_size=64)


def fp4_compatibility(s: State) -> None:
    if s.kv_cache_dtype != "fp4_e2m1":
        return
    where = "server_args.py:2840"
    prefill, decode = attention_backends(s)
    mla = s.model is not None and s.model.is_mla
    if prefill == "fa4":
        allowed = ["cutlass_mla", "flashinfer", "trtllm_mla"] if mla else ["triton", "torch_native", "flex_attention"]
        s.require(
            decode in allowed,
            f"KV4 FA4 {'MLA' if mla else 'MHA'} expects decode_attention_backend to be one of {allowed}, but got "
            f"{decode}",
            where,
        )
    elif prefill == decode:
        allowed = (
            ["cutlass_mla", "flashinfer", "trtllm_mla", "flashmla"]
            if mla
            else ["triton", "torch_native", "flex_attention", "trtllm_mha"]
        )
        s.require(
            s.attention_backend in allowed,
            f"KV4 {'MLA' if mla else 'MHA'} expects attention_backend to be one of {allowed}, but got "
            f"{s.attention_backend}",
            where,
        )


def multi_item_scoring(s: State) -> None:
    if not s.enable_mis:
        return
    where = "server_args.py:1400"
    s.set(
        "multi-item scoring",
        where,
        disable_cuda_graph=True,
        disable_piecewise_cuda_graph=True,
        disable_radix_cache=True,
        chunked_prefill_size=-1,
    )
    prefill, decode = attention_backends(s)
    s.require(
        prefill == "flashinfer" and decode == "flashinfer",
        "Multi-item scoring requires flashinfer attention backend for custom attention mask support. Please set "
        f"--attention-backend flashinfer when using --enable-mis. Current backends: prefill={prefill}, "
        f"decode={decode}",
        where,
    )


def hicache(s: State) -> None:
    """Host cache: layout, transport, and the decode backend that can share them."""
    if not (s.enable_hierarchical_cache or s.disaggregation_decode_enable_offload_kvcache):
        return
    where = "server_args.py:3380"
    _layout(s, where)
    if s.hicache_storage_backend == "mooncake" and s.hicache_mem_layout == "layer_first":
        layout = {"direct": "page_first_direct", "kernel": "page_first"}.get(s.hicache_io_backend)
        if layout:
            s.set("the storage backend needs pages", where, hicache_mem_layout=layout)
    if s.hicache_io_backend != "kernel" or attention_backends(s)[1] != "fa3":
        return
    if s.decode_attention_backend is not None:
        s.set("fa3 decode does not work with kernel I/O", where, hicache_io_backend="direct")
        _layout(s, where)
        return
    mla = s.model is not None and s.model.is_mla
    sinks = s.model is not None and s.model.has_sinks
    backend = ("flashinfer" if s.platform.sm100 else "triton") if mla else ("triton" if sinks else "flashinfer")
    s.set("fa3 decode does not work with kernel I/O", where, decode_attention_backend=backend)


def _layout(s: State, where: str) -> None:
    if s.hicache_mem_layout == "page_first_direct" and s.hicache_io_backend == "kernel":
        s.set("the layout needs direct I/O", where, hicache_io_backend="direct")
    if s.hicache_mem_layout == "page_first" and s.hicache_io_backend == "direct":
        s.set("direct I/O needs the direct layout", where, hicache_mem_layout="page_first_direct")
