"""Checks of features that few launches use (hisparse_hook.py, kv_shard_hook.py, layernorm_sp_hook.py, parallel_hook.py,
pd_disaggregation_hook.py, validation_hook.py). Where only a part is known, a note says so."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.view import attn_dp_enabled

__all__ = [
    "check_rare",
    "dwdp",
    "elastic_join",
    "hisparse",
    "kv_sharding",
    "layernorm_sp",
    "linear_replay",
    "model_checks",
    "prefill_complete",
]

_SP = ("Qwen3ForCausalLM",)


def prefill_complete(s: State) -> None:
    """--disaggregation-decode-allocation-policy prefill_complete."""
    if s.disaggregation_decode_allocation_policy != "prefill_complete":
        return
    where = "arg_groups/pd_disaggregation_hook.py:199"
    hicache = s.enable_hierarchical_cache
    decode, prefill = s.disaggregation_mode == "decode", s.disaggregation_mode == "prefill"
    attn_dp = s.dp_size if s.enable_dp_attention else 1
    reasons = (
        (not (decode or prefill), "aggregated serving"),
        (s.disaggregation_transfer_backend != "mooncake", "transfer backends other than Mooncake"),
        (
            s.pp_size != 1 or s.attn_cp_size != 1 or s.dcp_size != 1,
            "pipeline or attention context parallelism",
        ),
        (s.tp_size != attn_dp, "attention tensor parallelism greater than one"),
        (s.enable_pdmux or s.decoupled_spec_role != "null", "PD multiplexing or decoupled speculation"),
        (s.enable_pd_role_switch, "runtime PD role switching"),
        (s.encoder_only or s.language_only, "encoder disaggregation"),
        (s.enable_hisparse, "HiSparse"),
        (s.disaggregation_decode_host_receive_threshold < 1, "decode host KV buffering"),
        (
            decode and (s.disaggregation_decode_enable_radix_cache or hicache),
            "decode radix cache or decode HiCache",
        ),
        (
            prefill and hicache and (s.hicache_storage_backend is not None or s.hicache_write_policy != "write_back"),
            "prefill HiCache other than L2 write_back",
        ),
    )
    unsupported = [text for holds, text in reasons if holds]
    if unsupported:
        s.value_error(
            "--disaggregation-decode-allocation-policy prefill_complete does not yet support " + ", ".join(unsupported),
            where,
        )
    if prefill and s.optimistic_prefill_attempts == 0:
        s.set("prefill_complete", where, optimistic_prefill_attempts=1)


def dwdp(s: State) -> None:
    """Expert weights spread by data parallelism."""
    if s.dwdp_size <= 1:
        return
    where = "arg_groups/parallel_hook.py:433"
    s.require(s.dwdp_size == s.tp_size, f"dwdp_size ({s.dwdp_size}) must equal tp_size ({s.tp_size})", where)
    s.require(
        s.disaggregation_mode in ("null", "prefill"), "DWDP requires --disaggregation-mode null or prefill", where
    )
    s.require(not s.enable_eplb, "EPLB dynamic migration conflicts with static DWDP partitioning", where)
    s.require(s.speculative_algorithm is None, "DWDP does not support speculative decoding (MTP/draft workers)", where)
    s.require(s.pp_size == 1, "DWDP requires pp_size == 1", where)
    s.require(
        not s.enable_two_batch_overlap,
        "DWDP's prefetch event protocol does not support two-batch overlap",
        where,
    )
    s.set(
        "DWDP",
        where,
        attn_dp_size=s.dwdp_size,
        dp_size=1,
        enable_dp_attention_local_control_broadcast=True,
        enable_dp_lm_head=True,
        moe_dense_tp_size=1,
        ep_size=s.dwdp_size,
        moe_dp_size=1,
        moe_a2a_backend="none",
        disable_cuda_graph=True,
    )


def model_checks(s: State) -> None:
    """Flags that only some models have."""
    known = ("DeepseekV4ForCausalLM", "GlmMoeDsaForCausalLM")
    if s.enable_cp_decode_attn_tp and s.model is not None and s.model.architecture not in known:
        s.value_error(
            "--enable-cp-decode-attn-tp is only supported for models whose attention linears are replicated across CP "
            f"ranks (attn_tp_size=1). Got {s.model.architecture}.",
            "arg_groups/model_hook.py:140",
        )


def linear_replay(s: State) -> None:
    """Replay of the recurrent state (attention_hook.py:400)."""
    where = "arg_groups/attention_hook.py:400"
    decode = s.linear_attn_decode_backend or s.linear_attn_backend
    if s.enable_linear_replayssm:
        if decode not in ("triton", "helion"):
            s.value_error(
                "--enable-linear-replayssm requires Triton, or Helion for KDA, as the linear-attn decode backend; got "
                f"--linear-attn-decode-backend={decode!r}.",
                where,
            )
        if s.disable_radix_cache is False and s.mamba_radix_cache_strategy in ("extra_buffer", "extra_buffer_lazy"):
            s.value_error(
                "--enable-linear-replayssm requires --mamba-radix-cache-strategy no_buffer (the default)", where
            )
        if s.disaggregation_mode != "null":
            s.value_error("--enable-linear-replayssm is not supported under PD disaggregation yet (follow-up).", where)
        if s.linear_replayssm_cache_len < 1:
            s.value_error(f"--linear-replayssm-cache-len must be >= 1, got {s.linear_replayssm_cache_len}.", where)
    if s.enable_linear_replayssm_spec:
        if s.speculative_eagle_topk not in (None, 1):
            s.value_error("--enable-linear-replayssm-spec requires a linear draft chain", where)
        if decode not in ("triton", "flashinfer"):
            s.value_error(
                "--enable-linear-replayssm-spec requires the triton or flashinfer linear-attn decode backend, got "
                f"--linear-attn-decode-backend={decode!r}.",
                where,
            )
        if s.disaggregation_mode == "prefill":
            s.value_error("--enable-linear-replayssm-spec is not supported on a PD prefill server", where)
        if s.enable_linear_replayssm:
            s.value_error("--enable-linear-replayssm-spec and --enable-linear-replayssm are mutually exclusive", where)
        if s.mamba_ssm_dtype is None:
            s.set("replay keeps the state in float32", where, mamba_ssm_dtype="float32")


def kv_sharding(s: State) -> None:
    if not s.enable_kv_cache_sharding:
        return
    where = "arg_groups/kv_shard_hook.py:70"
    if s.disaggregation_mode != "prefill":
        s.value_error(
            "--enable-kv-cache-sharding is only supported on PD prefill workers: a rank's pool holds only its stripe "
            "of every cached page, which is incompatible with local decode.",
            where,
        )
    s.notes.append("--enable-kv-cache-sharding: only a part of its checks is known here")


def layernorm_sp(s: State) -> None:
    """Sequence parallel norms (layernorm_sp_hook.py)."""
    where = "arg_groups/layernorm_sp_hook.py:20"
    if not s.enable_layernorm_sp:
        if s.enable_megamoe_for_layernorm_sp:
            s.value_error("--enable-megamoe-for-layernorm-sp requires --enable-layernorm-sp.", where)
        return
    name = s.model.architecture if s.model is not None else None
    if name is None or name.startswith("MuseSpark"):
        s.notes.append("--enable-layernorm-sp: its checks for this model are not known here")
        return
    if s.enable_megamoe_for_layernorm_sp:
        s.value_error("--enable-megamoe-for-layernorm-sp supports only Muse Spark.", where)
    if name not in _SP:
        supported = ["MuseSparkForConditionalGeneration", *_SP]
        s.value_error(f"--enable-layernorm-sp is only supported for {supported}; got {name}.", where)
    if s.tp_size <= 1:
        s.value_error("--enable-layernorm-sp requires tp_size > 1", where)
    if attn_dp_enabled(s):
        s.value_error("--enable-layernorm-sp is not compatible with attention DP", where)
    if s.speculative_algorithm is not None:
        s.value_error("--enable-layernorm-sp supports speculative decoding only with Muse Spark DFLASH", where)
    if s.pp_size > 1:
        s.value_error("--enable-layernorm-sp is not compatible with pipeline parallelism", where)


def elastic_join(s: State) -> None:
    """Ranks that join a running deployment (parallel_hook.py:519)."""
    where = "arg_groups/parallel_hook.py:519"
    if s.ep_join_mode is not None:
        s.require(
            s.elastic_ep_backend is not None, "--elastic-ep-join-mode requires --elastic-ep-backend to be set.", where
        )
        s.notes.append("--elastic-ep-join-mode: only a part of its checks is known here")
    if s.ep_join_rank_offset != 0:
        s.require(
            s.ep_join_mode == "scale",
            "--elastic-ep-join-rank-offset is only valid with --elastic-ep-join-mode scale.",
            where,
        )
    if s.max_ep_size is not None:
        s.require(s.elastic_ep_backend is not None, "--max-ep-size requires --elastic-ep-backend to be set.", where)
        s.require(s.max_ep_size > 0, "--max-ep-size must be a positive integer.", where)
    scaling = s.elastic_ep_backend is not None and s.max_ep_size is not None and s.max_ep_size > s.tp_size
    if s.elastic_ep_initial_size is not None:
        s.require(
            scaling,
            "--elastic-ep-initial-size is only valid for an Elastic EP deployment with --max-ep-size larger than its "
            "local TP size.",
            where,
        )
    if scaling:
        s.notes.append("elastic expert parallelism with --max-ep-size: its checks are not known here")


def hisparse(s: State) -> None:
    if not s.enable_hisparse:
        return
    where = "arg_groups/hisparse_hook.py:90"
    if s.model is None:
        return
    v4 = s.model.architecture.startswith("DeepseekV4ForCausalLM")
    m3 = s.model.architecture.startswith("MiniMaxM3Sparse")
    s.require(
        s.model.is_dsa or v4 or m3,
        "--enable-hisparse is only supported for DSA (DeepSeek Sparse Attention) models (e.g., DeepSeek V3.2, GLM-5), "
        "DeepSeek V4, and MiniMax M3 now. ",
        where,
    )
    s.require(
        bool(s.disable_radix_cache),
        "Hierarchical sparse attention currently requires --disable-radix-cache.",
        where,
    )
    if s.enable_mixed_chunk:
        s.value_error("--enable-hisparse does not support --enable-mixed-chunk yet.", where)
    if s.speculative_algorithm is not None:
        if (s.speculative_eagle_topk or 1) != 1:
            s.value_error(
                "The minimal HiSparse spec integration supports linear speculation only; use "
                "--speculative-eagle-topk 1.",
                where,
            )
        if s.speculative_adaptive:
            s.value_error(
                "HiSparse speculative decoding uses statically sized swap state; --speculative-adaptive is not "
                "supported.",
                where,
            )
    if not s.model.is_dsa:
        return
    allowed = {"bfloat16": {"flashmla_sparse"}, "fp8_e4m3": {"flashmla_kv", "flashinfer_sparse_mla"}}.get(
        s.kv_cache_dtype, {"flashmla_sparse", "flashmla_kv", "flashinfer_sparse_mla"}
    )
    for name, label in (("dsa_prefill_backend", "prefill"), ("dsa_decode_backend", "decode")):
        backend = s.values[name]
        if backend is not None and backend not in allowed:
            s.value_error(
                f"HiSparse supports DSA {label} backend(s) {sorted(allowed)} on this platform with "
                f"--kv-cache-dtype={s.kv_cache_dtype}, but got --dsa-{label}-backend={backend}.",
                where,
            )


def check_rare(s: State) -> None:
    """Watermarks and load publishing, at the end (validation_hook.py:34, 435)."""
    where = "arg_groups/validation_hook.py:34"
    if s.watermark_config is not None and not s.enable_watermark:
        s.value_error("--watermark-config requires --enable-watermark", where)
    if s.enable_watermark:
        algorithm = s.speculative_algorithm
        for wrong, text in (
            (s.enable_custom_logit_processor, "is incompatible with --enable-custom-logit-processor"),
            (s.dllm_algorithm is not None, "is not supported with diffusion LLM"),
            (s.disaggregation_mode != "null", "is not supported with PD disaggregation"),
            (
                algorithm not in (None, "NGRAM", "EAGLE", "EAGLE3"),
                f"supports speculative algorithms NGRAM, EAGLE, and EAGLE3, got {algorithm!r}",
            ),
            (
                s.pp_size > 1 and algorithm is not None,
                "is not supported with pipeline-parallel speculative decoding",
            ),
            (
                s.speculative_use_rejection_sampling,
                "is incompatible with --speculative-use-rejection-sampling",
            ),
        ):
            if wrong:
                s.value_error(f"--enable-watermark {text}", where)
    mode = (s.load_publish_endpoint or "").strip()
    if mode and mode.lower() != "off" and not s.kv_events_config:
        s.value_error(
            "--load-publish-endpoint requires --kv-events-config: routers discover the load range through "
            "/server_info's kv_events block, absent without a publisher.",
            "arg_groups/validation_hook.py:435",
        )
