"""Checks of the KV cache: FP4 and MXFP8 types, cache features (kv_cache_hook.py)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.view import attention_backends, attn_dp_enabled, uses_mla

__all__ = ["cache_compatibility", "fp4_compatibility", "prefill_only_args", "prefill_only_backend", "unified_memory"]

_HOOK = "arg_groups/kv_cache_hook.py"


def fp4_compatibility(s: State) -> None:
    if s.kv_cache_dtype == "mxfp8" and not s.platform.blackwell:
        s.value_error(
            "--kv-cache-dtype mxfp8 requires an SM100+ (Blackwell) GPU for the block-scaled operands used by the FA4 "
            "MXFP8 attention path.",
            f"{_HOOK}:100",
        )
    if s.kv_cache_dtype not in ("nvfp4", "fp4_mx_block16"):
        return
    where = f"{_HOOK}:112"
    prefill, decode = attention_backends(s)
    nvfp4 = s.kv_cache_dtype == "nvfp4"
    if nvfp4 and not (s.platform.sm100 or s.platform.sm120):
        s.refuse(
            "RuntimeError",
            "--kv-cache-dtype=nvfp4 requires Blackwell SM100 or SM120. Use --kv-cache-dtype=fp4_mx_block16 for the "
            "block-size-16 FP4 recipe.",
            where,
        )
    if s.enable_unified_memory:
        s.value_error(
            "FP4 KV cache does not yet support --enable-unified-memory: the unified MHA pool does not allocate FP4 "
            "block scales or the prefill dequant workspace.",
            where,
        )
    native = nvfp4 and s.platform.sm100 and "trtllm_mha" in (prefill, decode)
    mixed = nvfp4 and prefill == "flashinfer" and decode == "trtllm_mha"
    if native:
        _native_nvfp4(s, mixed=mixed)
    if prefill == "fa4":
        kind, allowed = (
            ("MLA", ["flashinfer", "trtllm_mla"])
            if uses_mla(s)
            else (
                "MHA",
                ["triton", "torch_native", "flex_attention"],
            )
        )
        s.require(
            decode in allowed,
            f"KV4 FA4 {kind} expects decode_attention_backend to be one of {allowed}, but got {decode}",
            where,
        )
    elif prefill == decode:
        kind, allowed = (
            ("MLA", ["flashinfer", "trtllm_mla"])
            if uses_mla(s)
            else (
                "MHA",
                ["triton", "torch_native", "flex_attention", "trtllm_mha"],
            )
        )
        s.require(
            s.attention_backend in allowed,
            f"KV4 {kind} expects attention_backend to be one of {allowed}, but got {s.attention_backend}",
            where,
        )


def _native_nvfp4(s: State, *, mixed: bool) -> None:
    where = f"{_HOOK}:150"
    algorithm = s.speculative_algorithm.upper() if s.speculative_algorithm is not None else None
    if algorithm in ("DFLASH", "DSPARK"):
        s.value_error(
            f"SM100 native NVFP4 speculative decoding does not yet support {algorithm}; use EAGLE/NEXTN or NGRAM.",
            where,
        )
    if algorithm is not None and algorithm not in ("EAGLE", "EAGLE3", "NEXTN", "NGRAM"):
        s.value_error(
            "SM100 native NVFP4 speculative decoding supports EAGLE, EAGLE3, NEXTN, and breadth-1 NGRAM; got "
            f"{algorithm}.",
            where,
        )
    if algorithm == "NGRAM" and s.speculative_ngram_max_bfs_breadth != 1:
        s.value_error(
            "SM100 native NVFP4 NGRAM speculative decoding requires --speculative-ngram-max-bfs-breadth=1 because "
            "trtllm_mha supports linear target verification only; got "
            f"{s.speculative_ngram_max_bfs_breadth}.",
            where,
        )
    if algorithm not in (None, "NGRAM"):
        draft = s.speculative_draft_attention_backend
        if draft is None:
            s.set("native NVFP4 KV", where, speculative_draft_attention_backend="trtllm_mha")
        elif draft != "trtllm_mha":
            s.value_error(
                "SM100 native NVFP4 speculative decoding requires --speculative-draft-attention-backend=trtllm_mha so "
                f"the draft worker consumes its physical NVFP4 KV layout; got {draft!r}.",
                where,
            )
    if mixed and algorithm is not None and s.speculative_attention_mode == "prefill":
        s.set("mixed NVFP4 verifies on the decode backend", where, speculative_attention_mode="decode")
    if s.disaggregation_mode != "null":
        s.value_error(
            "SM100 native NVFP4 with trtllm_mha does not yet support PD disaggregation because its physical "
            "block-scale layout is not implemented by the KV transfer path.",
            where,
        )
    if s.enable_hierarchical_cache or s.enable_lmcache:
        s.value_error(
            "SM100 native NVFP4 with trtllm_mha does not yet support hierarchical KV cache or LMCache because their "
            "host pools do not preserve the physical block-scale layout.",
            where,
        )


def prefill_only_args(s: State) -> None:
    """Preconditions of --prefill-only-disable-kv-cache."""
    if not s.prefill_only_disable_kv_cache:
        return
    where = f"{_HOOK}:865"
    name = "--prefill-only-disable-kv-cache"
    if not s.is_embedding:
        s.value_error(f"{name} currently requires --is-embedding.", where)
    if s.kv_cache_dtype in ("nvfp4", "fp4_mx_block16", "mxfp8"):
        s.value_error(f"{name} does not currently support --kv-cache-dtype={s.kv_cache_dtype}.", where)
    if s.chunked_prefill_size != -1:
        s.value_error(f"{name} requires --chunked-prefill-size=-1", where)
    if not s.disable_radix_cache:
        s.value_error(f"{name} requires --disable-radix-cache", where)
    if s.attn_cp_size > 1:
        s.value_error(f"{name} is incompatible with --attn-cp-size > 1", where)
    if s.enable_prefill_cp:
        s.value_error(f"{name} is incompatible with --enable-prefill-cp", where)


def prefill_only_backend(s: State) -> None:
    prefill = attention_backends(s)[0]
    if s.prefill_only_disable_kv_cache and prefill not in ("fa3", "fa4"):
        s.value_error(
            "--prefill-only-disable-kv-cache currently requires the FA prefill backend (fa3/fa4), but got prefill "
            f"backend {prefill!r}.",
            f"{_HOOK}:321",
        )


def cache_compatibility(s: State) -> None:
    where = f"{_HOOK}:351"
    backup = s.disaggregation_decode_retraction_backup == "host_pool"
    if backup and s.disaggregation_mode != "decode":
        s.value_error(
            "--disaggregation-decode-retraction-backup=host_pool is only supported on a PD decode server.", where
        )
    if backup and s.dcp_size > 1:
        s.value_error("--disaggregation-decode-retraction-backup=host_pool does not support --dcp-size > 1.", where)
    if s.radix_eviction_policy == "tlru":
        config = s.radix_eviction_policy_config or {}
        threshold, estimate = config.get("threshold", 0), config.get("next_prompt_estimate", 0)
        if threshold < 0 or estimate < 0 or threshold <= estimate:
            s.value_error(
                "--radix-eviction-policy tlru needs 'threshold' greater than 'next_prompt_estimate' in "
                f"--radix-eviction-policy-config, got {threshold} <= {estimate}",
                where,
            )
    if s.enable_hierarchical_cache and s.disable_radix_cache:
        s.value_error(
            "The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be "
            "used at the same time. Please use only one of them.",
            where,
        )
    if s.disaggregation_decode_enable_offload_kvcache:
        if s.disaggregation_mode != "decode":
            s.value_error(
                "The argument disaggregation-decode-enable-offload-kvcache is only supported for decode side.", where
            )
        if s.hicache_storage_backend is None:
            s.value_error(
                "The argument disaggregation-decode-enable-offload-kvcache is only supported when "
                "hicache-storage-backend is provided.",
                where,
            )
    s.set(
        "whether the ratio was given", where, _swa_full_tokens_ratio_explicitly_set=s.swa_full_tokens_ratio is not None
    )
    ratio = 0.8 if s.swa_full_tokens_ratio is None else s.swa_full_tokens_ratio
    if not 0 < ratio <= 1:
        s.value_error("--swa-full-tokens-ratio should be in range (0, 1.0].", where)
    if s.swa_prefix_tails is not None and s.swa_prefix_tails < 0:
        s.value_error("--swa-prefix-tails should be a non-negative integer.", where)
    if s.enable_lmcache:
        _lmcache(s)


def _lmcache(s: State) -> None:
    where = f"{_HOOK}:440"
    if s.enable_hierarchical_cache:
        s.value_error("--enable-lmcache and --enable-hierarchical-cache are mutually exclusive", where)
    if s.enable_unified_cache_external_linker:
        s.value_error("--enable-lmcache and --enable-unified-cache-external-linker are mutually exclusive", where)
    if s.disable_radix_cache:
        s.value_error("--enable-lmcache requires radix cache to be enabled", where)
    if s.speculative_algorithm is not None:
        s.refuse("NotImplementedError", "LMCacheUnifiedRadixCache does not yet support speculative decoding", where)
    if attn_dp_enabled(s):
        s.refuse("NotImplementedError", "LMCacheUnifiedRadixCache does not yet support DP attention", where)
    if s.enable_streaming_session:
        s.refuse("NotImplementedError", "LMCacheUnifiedRadixCache does not yet support streaming sessions", where)
    if s.disaggregation_mode != "null":
        s.refuse(
            "NotImplementedError",
            "LMCacheUnifiedRadixCache currently supports colocated prefill/decode scheduling only",
            where,
        )


def unified_memory(s: State) -> None:
    """--enable-unified-memory and the page-major layout."""
    if s.enable_unified_memory:
        s.set("the unified pool is page-major", f"{_HOOK}:770", enable_page_major_kv_layout=True)
    elif s.enable_page_major_kv_layout:
        s.refuse(
            "AssertionError",
            "--enable-page-major-kv-layout without --enable-unified-memory is temporarily unsupported",
            f"{_HOOK}:770",
        )
    if not s.enable_unified_memory:
        return
    where = f"{_HOOK}:528"
    mla = uses_mla(s)
    allowed = (
        {"triton", "fa3", "trtllm_mla", "flashinfer", "cutedsl_mla", "flashmla"}
        if mla
        else {"triton", "fa3", "fa4", "flashinfer", "trtllm_mha"}
    )
    backends = {backend for backend in attention_backends(s) if backend is not None}
    s.require(
        backends <= allowed,
        f"--enable-page-major-kv-layout: the resolved attention backends {sorted(backends)} are not in the allowed "
        f"set {sorted(allowed)} for this configuration. Pass a compatible --attention-backend.",
        f"{_HOOK}:770",
    )
    if s.disaggregation_mode != "null":
        s.require(
            s.disaggregation_transfer_backend == "mooncake",
            "--enable-unified-memory with PD disaggregation supports only these transfer backends: mooncake; got "
            f"{s.disaggregation_transfer_backend!r}.",
            where,
        )
    s.require(
        s.speculative_algorithm in (None, "DSPARK", "EAGLE", "EAGLE3", "DFLASH"),
        "--enable-unified-memory only supports --speculative-algorithm DSPARK, DFLASH, EAGLE and EAGLE3",
        where,
    )
    s.require(
        s.speculative_eagle_topk in (None, 1),
        "--enable-unified-memory supports a linear draft chain only",
        where,
    )
    s.require(
        s.dcp_size <= 1 or mla,
        "--enable-unified-memory with decode context parallelism (--dcp-size > 1) supports MLA models only",
        where,
    )
    s.notes.append("--enable-unified-memory: only a part of its checks is known here")
