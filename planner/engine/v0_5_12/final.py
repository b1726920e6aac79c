"""The final checks of 0.5.12.post1 (server_args.py:7380, check_server_args)."""

from __future__ import annotations

from planner.engine.state import State

__all__ = ["check_server_args"]


def check_server_args(s: State) -> None:
    where = "server_args.py:7380"
    s.require(s.tp_size * s.pp_size % s.nnodes == 0, "tp_size must be divisible by number of nodes", where)
    micro = s.pp_max_micro_batch_size
    s.require(
        micro is None or micro >= 1,
        f"pp_max_micro_batch_size must be a positive integer or None (for auto-compute). Got: {micro}",
        where,
    )
    s.require(
        not (s.disable_cuda_graph_padding and s.enable_torch_compile),
        "--disable-cuda-graph-padding is incompatible with --enable-torch-compile.",
        where,
    )
    if s.pp_size > 1:
        s.require(
            bool(s.disable_overlap_schedule) and s.speculative_algorithm is None,
            "Pipeline parallelism is not compatible with overlap schedule, speculative decoding",
            where,
        )
    s.require(
        not (s.dp_size > 1 and s.nnodes != 1 and not s.enable_dp_attention),
        "multi-node data parallel is not supported unless dp attention!",
        where,
    )
    s.require(s.base_gpu_id >= 0, "base_gpu_id must be non-negative", where)
    s.require(s.gpu_id_step >= 1, "gpu_id_step must be positive", where)
    s.require(s.moe_dense_tp_size in (1, None), "moe_dense_tp_size only support 1 and None currently", where)
    s.require(
        ":" not in s.served_model_name,
        "served_model_name cannot contain a colon (':') character. The colon is reserved for the 'model:adapter' "
        f"syntax used in LoRA adapter specification. Invalid value: '{s.served_model_name}'",
        where,
    )
    _lora(s)
    if s.speculative_algorithm is not None:
        s.require(not s.enable_mixed_chunk, "enable_mixed_chunk is required for speculative decoding", where)
    if s.chunked_prefill_size > 0 and s.disaggregation_mode != "decode":
        s.require(
            s.chunked_prefill_size % s.page_size == 0, "chunked_prefill_size must be divisible by page_size", where
        )
    _late_checks(s, where)


def _lora(s: State) -> None:
    where = "server_args.py:7480"
    s.require(s.max_loras_per_batch > 0, "max_loras_per_batch must be positive", where)
    if s.lora_paths and s.enable_lora is None:
        s.set("--lora-paths is given", where, enable_lora=True)
    if not s.enable_lora:
        return
    if s.enable_lora_overlap_loading is None:
        s.set("default", where, enable_lora_overlap_loading=False)
    if s.speculative_algorithm not in ("NGRAM", None):
        s.value_error("Currently LoRA is only compatible with NGRAM speculative decoding.", where)
    if s.lora_paths is None:
        s.set("none", where, lora_paths=[])
    s.require(
        bool(s.lora_paths) or bool(s.max_lora_rank and s.lora_target_modules),
        "When no initial --lora-paths is provided, you need to specify both --max-lora-rank and "
        "--lora-target-modules for LoRA initialization.",
        where,
    )
    s.notes.append("LoRA is on: only a part of its checks is known here")


def _late_checks(s: State, where: str) -> None:
    if s.enable_pdmux:
        s.require(
            s.pp_size == 1, "PD-Multiplexing is only supported with pipeline parallelism disabled (pp_size=1).", where
        )
        s.require(s.chunked_prefill_size == -1, "PD-Multiplexing is not compatible with chunked prefill.", where)
        s.require(s.disaggregation_mode == "null", "PD-Multiplexing is not compatible with disaggregation mode.", where)
        s.require(bool(s.disable_overlap_schedule), "PD-Multiplexing is not compatible with overlap schedule.", where)
    s.require(s.tokenizer_worker_num > 0, "Tokenizer worker num must >= 1", where)
    s.require(s.detokenizer_worker_num > 0, "Detokenizer worker num must >= 1", where)
    if s.enable_priority_scheduling:
        s.require(
            s.schedule_policy in ("fcfs", "lof"),
            "To use priority scheduling, schedule_policy must be 'fcfs' or 'lof'. "
            f"'{s.schedule_policy}' is not supported.",
            where,
        )
    _hisparse(s)
    s.require(s.schedule_conservativeness >= 0, "schedule_conservativeness must be non-negative", where)
    if s.export_metrics_to_file and s.export_metrics_to_file_dir is None:
        s.value_error("--export-metrics-to-file-dir is required when --export-metrics-to-file is enabled", where)
    if s.enable_two_batch_overlap and s.moe_a2a_backend == "none":
        s.value_error("When enabling two batch overlap, moe_a2a_backend cannot be 'none'.", where)
    if s.enable_two_batch_overlap and s.enforce_shared_experts_fusion:
        s.value_error("--enable-two-batch-overlap and --enforce-shared-experts-fusion cannot be used together.", where)
    if s.enable_quant_communications:
        text = (
            "Communications quantization is only used with tp_size != 1"
            if s.tp_size == 1
            else "Communications quantization is only supported for NPU device"
        )
        s.value_error(text, where)


def _hisparse(s: State) -> None:
    if not s.enable_hisparse or s.model is None:
        return
    where = "arg_groups/hisparse_hook.py:60"
    v4 = s.model.architecture.startswith("DeepseekV4ForCausalLM")
    s.require(
        s.model.is_dsa or v4,
        "--enable-hisparse is only supported for DSA (DeepSeek Sparse Attention) models (e.g., DeepSeek V3.2, GLM-5) "
        "and DeepSeek V4 now. ",
        where,
    )
    s.require(
        bool(s.disable_radix_cache),
        "Hierarchical sparse attention currently requires --disable-radix-cache.",
        where,
    )
    if v4:
        return
    allowed = {"bfloat16": {"flashmla_sparse"}, "fp8_e4m3": {"flashmla_kv"}}.get(
        s.kv_cache_dtype, {"flashmla_sparse", "flashmla_kv"}
    )
    for name, label in (("nsa_prefill_backend", "prefill"), ("nsa_decode_backend", "decode")):
        backend = s.values[name]
        if backend is not None and backend not in allowed:
            s.value_error(
                f"HiSparse with --kv-cache-dtype={s.kv_cache_dtype} requires --nsa-{label}-backend in "
                f"{sorted(allowed)}, but got {backend}.",
                where,
            )
