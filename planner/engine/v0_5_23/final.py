"""The final checks of 0.5.23 (validation_hook.py:172, lora_hook.py)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.rare import check_rare, hisparse
from planner.engine.v0_5_23.view import attn_dp_enabled

__all__ = ["check_server_args"]


def check_server_args(s: State) -> None:
    where = "arg_groups/validation_hook.py:172"
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
        _pipeline(s)
    s.require(
        not (s.dp_size > 1 and s.nnodes != 1),
        "multi-node data-parallel replicas are not supported; use attention DP (--attn-dp-size) across nodes",
        where,
    )
    s.require(s.base_gpu_id >= 0, "base_gpu_id must be non-negative", where)
    s.require(s.gpu_id_step >= 1, "gpu_id_step must be positive", where)
    s.require(
        s.moe_dense_tp_size in (None, 1, s.tp_size),
        "moe_dense_tp_size only supports None, 1, or tp_size currently",
        where,
    )
    s.require(
        ":" not in s.served_model_name,
        "served_model_name cannot contain a colon (':') character. The colon is reserved for the 'model:adapter' "
        f"syntax used in LoRA adapter specification. Invalid value: '{s.served_model_name}'",
        where,
    )
    _lora(s)
    if s.speculative_algorithm is not None:
        s.require(
            not s.enable_mixed_chunk or s.speculative_algorithm in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"),
            f"enable_mixed_chunk is not supported with speculative_algorithm={s.speculative_algorithm}",
            where,
        )
    if s.chunked_prefill_size > 0 and s.disaggregation_mode != "decode":
        s.require(
            s.chunked_prefill_size % s.page_size == 0, "chunked_prefill_size must be divisible by page_size", where
        )
    if s.enable_pdmux:
        s.require(
            s.pp_size == 1, "PD-Multiplexing is only supported with pipeline parallelism disabled (pp_size=1).", where
        )
        s.require(s.chunked_prefill_size == -1, "PD-Multiplexing is not compatible with chunked prefill.", where)
        s.require(s.disaggregation_mode == "null", "PD-Multiplexing is not compatible with disaggregation mode.", where)
        s.require(bool(s.disable_overlap_schedule), "PD-Multiplexing is not compatible with overlap schedule.", where)
    _workers_and_scheduling(s, where)


def _pipeline(s: State) -> None:
    where = "arg_groups/validation_hook.py:119"
    s.require(bool(s.disable_overlap_schedule), "Pipeline parallelism is not compatible with overlap schedule", where)
    algorithm = s.speculative_algorithm
    pp_spec = s.flag("SGLANG_ENABLE_PP_SPEC")
    if algorithm == "DSPARK":
        s.require(
            s.disaggregation_mode == "prefill",
            "Pipeline parallel DSPARK requires disaggregation-mode=prefill",
            where,
        )
    elif algorithm is not None:
        s.require(
            algorithm.upper() == "EAGLE" and not s.enable_multi_layer_eagle,
            "Pipeline parallelism currently only supports EAGLE (non-multi-layer) speculative decoding",
            where,
        )
        s.require(
            pp_spec or s.disaggregation_mode == "prefill",
            "PP + speculative decoding (MTP) is only supported on prefill nodes (disaggregation-mode=prefill)",
            where,
        )
        if pp_spec:
            s.require(
                s.disaggregation_mode == "null",
                "SGLANG_ENABLE_PP_SPEC is not compatible with --disaggregation-mode",
                where,
            )
    s.require(
        s.min_free_slots_delay is None,
        "--min-free-slots-delay is not supported with pipeline parallelism",
        where,
    )


def _lora(s: State) -> None:
    where = "arg_groups/lora_hook.py:33"
    s.require(s.max_loras_per_batch > 0, "max_loras_per_batch must be positive", where)
    if s.lora_paths and s.enable_lora is None:
        s.set("--lora-paths is given", where, enable_lora=True)
    draft_runner = s.speculative_moe_runner_backend
    if not s.enable_lora:
        if s.speculative_algorithm is not None and (draft_runner or "").startswith("lora"):
            s.value_error(
                f"--speculative-moe-runner-backend {draft_runner} is not supported: the LoRA MoE runner serves "
                "adapter traffic on the target model",
                "arg_groups/lora_hook.py:183",
            )
        if s.moe_runner_backend.startswith("lora"):
            s.value_error(
                f"--moe-runner-backend {s.moe_runner_backend} requires --enable-lora (or --lora-paths)", where
            )
        return
    if s.enable_lora_overlap_loading is None:
        s.set("default", where, enable_lora_overlap_loading=False)
    if s.lora_paths is None:
        s.set("none", where, lora_paths=[])
    s.require(
        bool(s.lora_paths) or bool(s.max_lora_rank and s.lora_target_modules),
        "When no initial --lora-paths is provided, you need to specify both --max-lora-rank and "
        "--lora-target-modules for LoRA initialization.",
        where,
    )
    s.notes.append("LoRA is on: only a part of its checks is known here")


def _workers_and_scheduling(s: State, where: str) -> None:
    s.require(s.tokenizer_worker_num > 0, "Tokenizer worker num must >= 1", where)
    s.require(s.detokenizer_worker_num > 0, "Detokenizer worker num must >= 1", where)
    s.require(s.mm_processor_worker_num >= 0, "Multimodal processor worker num must >= 0", where)
    s.require(s.mm_io_worker_num >= 0, "Multimodal I/O worker num must >= 0", where)
    if s.enable_priority_scheduling:
        s.require(
            s.schedule_policy in ("fcfs", "lof"),
            "To use priority scheduling, schedule_policy must be 'fcfs' or 'lof'. "
            f"'{s.schedule_policy}' is not supported.",
            where,
        )
    if s.retraction_policy == "priority" and not s.enable_priority_scheduling:
        s.value_error("--retraction-policy priority requires --enable-priority-scheduling", where)
    hisparse(s)
    s.require(s.schedule_conservativeness >= 0, "schedule_conservativeness must be non-negative", where)
    if s.export_metrics_to_file and s.export_metrics_to_file_dir is None:
        s.value_error("--export-metrics-to-file-dir is required when --export-metrics-to-file is enabled", where)
    if s.enable_two_batch_overlap and s.moe_a2a_backend == "none" and not attn_dp_enabled(s):
        s.value_error(
            "When enabling two batch overlap without an EP a2a backend (moe_a2a_backend='none'), attention DP "
            "(--attn-dp-size) is required (DeepSeek-V4 non-EP DP TBO path).",
            "arg_groups/validation_hook.py:756",
        )
    if s.enable_quant_communications:
        text = (
            "Communications quantization is only used with tp_size != 1"
            if s.tp_size == 1
            else "Communications quantization is only supported for NPU device"
        )
        s.value_error(text, where)
    if s.sampling_backend == "intel_xpu":
        s.value_error(f"--sampling-backend intel_xpu requires --device xpu, got --device {s.device}", where)
    if not (s.smg_grpc_mode or s.grpc_mode) and s.grpc_port == s.port:
        s.value_error(f"--grpc-port ({s.grpc_port}) must differ from --port ({s.port})", where)
    if s.kv_canary_sweep_interval > 0 and s.kv_canary == "none":
        s.value_error("--kv-canary-sweep-interval requires --kv-canary in {log, raise}", where)
    check_rare(s)
