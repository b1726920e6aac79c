"""Disaggregation, boundary reduction and the final checks (pd_disaggregation_hook.py, validation_hook.py:172)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.engine.state import State
from planner.engine.v0_5_23.rare import check_rare, hisparse, prefill_complete
from planner.engine.v0_5_23.view import attn_dp_enabled

__all__ = [
    "boundary_reduction",
    "check_server_args",
    "checkpoint_method",
    "context_length",
    "load_format",
    "model_config",
    "pd_disaggregation",
    "quantization",
]

_PD = "arg_groups/pd_disaggregation_hook.py:23"
_AR = frozenset(
    {
        "KimiK3ForConditionalGeneration",
        "KimiK3LinearForCausalLM",
        "MossVLForCausalLM",
        "MossVLForConditionalGeneration",
        "Qwen3ForCausalLM",
        "Qwen3ForRewardModel",
        "Qwen3ForSequenceClassification",
        "Qwen3Model",
        "Qwen4ExpForCausalLMMTP",
        "Qwen4ExpForConditionalGeneration",
    }
)
_RSV = frozenset(
    {
        "BailingMoELinearForCausalLM",
        "BailingMoeV2_5ForCausalLM",
        "LongcatFlashForCausalLM",
        "LongcatFlashForCausalLMNextN",
        "Step3VLForConditionalGeneration",
    }
)


def pd_disaggregation(s: State) -> None:
    if s.disaggregation_transfer_backend == "mooncake_tcp":
        s.set("mooncake over TCP", _PD, disaggregation_transfer_backend="mooncake", disaggregation_ib_device=None)
    prefill_complete(s)
    threshold = s.disaggregation_decode_host_receive_threshold
    if not 0 <= threshold <= 1:
        s.value_error("--disaggregation-decode-host-receive-threshold must be between 0 and 1", _PD)
    if threshold < 1:
        if s.enable_hisparse or s.enable_pd_role_switch:
            s.value_error("Decode host receive does not yet support HiSparse or role switching", _PD)
        if s.disaggregation_decode_retraction_backup == "cpu_tensor":
            s.value_error("Decode host KV buffering requires host_pool retraction", _PD)
        s.set("decode host receive", _PD, disaggregation_decode_retraction_backup="host_pool")
    if s.disaggregation_mode == "decode":
        _decode_role(s)
    elif s.disaggregation_mode == "prefill":
        s.require(
            s.disaggregation_transfer_backend != "fake",
            "Prefill server does not support 'fake' as the transfer backend",
            _PD,
        )
    if s.disaggregation_mode in ("prefill", "decode") and s.enable_pd_role_switch:
        _role_switch(s)


def _decode_role(s: State) -> None:
    backends = ("mooncake", "nixl", "mori", "ascend", "fake")
    if s.dcp_size > 1 and s.disaggregation_transfer_backend not in backends:
        s.value_error(
            "PD decode DCP requires --disaggregation-transfer-backend mooncake, nixl, mori, ascend, or fake for "
            f"synthetic benchmarking, got {s.disaggregation_transfer_backend!r}.",
            _PD,
        )
    if s.disaggregation_decode_enable_radix_cache:
        if s.enable_hisparse:
            s.value_error("--disaggregation-decode-enable-radix-cache is incompatible with --enable-hisparse", _PD)
        if s.disaggregation_transfer_backend == "fake":
            s.value_error(
                "--disaggregation-decode-enable-radix-cache is incompatible with --disaggregation-transfer-backend "
                "fake",
                _PD,
            )
        s.set("--disaggregation-decode-enable-radix-cache", _PD, disable_radix_cache=False)
    else:
        s.set("a decode server keeps no radix cache", _PD, disable_radix_cache=True)
    if s.disaggregation_decode_extra_slots is None:
        extra = 0
        if s.max_running_requests is not None:
            per_worker = max(1, s.max_running_requests // (s.dp_size * s.attn_dp_size))
            extra = per_worker * 2 if per_worker <= 32 else 0
        s.set("by running requests of a worker", _PD, disaggregation_decode_extra_slots=extra)


def _role_switch(s: State) -> None:
    unsupported = [
        text
        for holds, text in (
            (s.ep_size > 1, f"expert parallelism (--ep-size {s.ep_size})"),
            (s.moe_a2a_backend != "none", f"MoE all-to-all (--moe-a2a-backend {s.moe_a2a_backend})"),
            (s.pp_size > 1, f"pipeline parallelism (--pp-size {s.pp_size})"),
            (s.dcp_size > 1, f"decode context parallelism (--dcp-size {s.dcp_size})"),
            (
                s.speculative_algorithm is not None,
                f"speculative decoding (--speculative-algorithm {s.speculative_algorithm})",
            ),
        )
        if holds
    ]
    if unsupported:
        s.value_error(
            "--enable-pd-role-switch does not rebuild role-specific state for the following features: "
            + ", ".join(unsupported)
            + ". Remove these options or drop --enable-pd-role-switch.",
            _PD,
        )


def context_length(s: State) -> None:
    """A context longer than the model's is refused unless the environment allows it (model_config.py:1291)."""
    if s.model is None or s.context_length is None or s.context_length <= s.model.context_len:
        return
    where = "configs/model_config.py:1291"
    if s.flag("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"):
        return
    s.value_error(
        f"Warning: User-specified context_length ({s.context_length}) is greater than the derived context_length "
        f"({s.model.context_len}). This may lead to incorrect model outputs or CUDA errors. Note that the derived "
        "context_length may differ from max_position_embeddings in the model's config. To allow overriding this "
        "maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
        where,
    )


_COMPATIBLE: Mapping[str, tuple[str, ...]] = {
    "modelopt_fp8": ("modelopt",),
    "modelopt_fp4": ("modelopt", "fp8"),
    "modelopt_mixed": ("modelopt",),
    "nvfp4_online": ("fp8", "modelopt_fp8"),
    "minimax_m3_nvfp4": ("mxfp8",),
    "petit_nvfp4": ("modelopt",),
    "w8a8_int8": ("compressed-tensors", "compressed_tensors"),
    "w8a8_fp8": ("compressed-tensors", "compressed_tensors"),
    "auto-round-int8": ("compressed-tensors", "compressed_tensors"),
}


def quantization(s: State, *, compatible: Mapping[str, tuple[str, ...]] | None = None) -> None:
    """The asked quantisation has to go with the checkpoint's (model_config.py, _verify_quantization)."""
    if s.model is None or s.quantization is None:
        return
    asked = s.quantization.lower()
    if asked.startswith("mlx_"):
        s.value_error(f"Unknown quantization method: {asked}.", "configs/model_config.py:1710")
    if not s.model.quant:
        return
    method = checkpoint_method(s.model.quant, asked)
    if asked in ("quark_mxfp4", method) or method in (compatible or _COMPATIBLE).get(asked, ()):
        return
    if method in ("modelopt_fp8", "modelopt_fp4", "modelopt_mixed") and asked != "nvfp4_online":
        return  # the checkpoint's method wins over what was asked (base_config.py:223)
    s.value_error(
        f"Quantization method specified in the model config ({method}) does not match the quantization method "
        f"specified in the `quantization` argument ({asked}).",
        "configs/model_config.py:1700",
    )


def checkpoint_method(quant: Mapping[str, Any], asked: str | None) -> str:
    """The engine's name of a checkpoint's quantisation, with its overrides for what was asked."""
    method = quant.get("quant_method")
    method = str(method or asked or "").lower()
    if asked == "humming" and method != "mxfp4":
        return "humming"
    marlin = {"gptq": "gptq_marlin", "awq": "awq_marlin"}.get(method)
    if marlin is not None and asked in (None, "marlin", marlin):
        return marlin
    if asked == "moe_wna16" and method in ("gptq", "awq"):
        return "moe_wna16"
    return method


def model_config(s: State) -> None:
    """What the engine refuses when it first reads the model."""
    context_length(s)
    quantization(s)


def load_format(s: State) -> None:
    where = "arg_groups/model_path_hook.py:163"
    if s.custom_weight_loader is None:
        s.set("default", where, custom_weight_loader=[])
    if s.load_format == "remote_instance" and (
        s.remote_instance_weight_loader_backend != "modelexpress"
        and (
            s.remote_instance_weight_loader_seed_instance_ip is None
            or s.remote_instance_weight_loader_seed_instance_service_port is None
        )
    ):
        s.set("no seed instance", where, load_format="auto")
    if s.weight_cache_mode != "off" and s.speculative_algorithm is not None:
        s.value_error(
            "--weight-cache-mode is not supported together with speculative decoding (--speculative-algorithm): the "
            "weight cache daemon does not export the draft model's weights.",
            where,
        )


def boundary_reduction(s: State) -> None:
    where = "arg_groups/boundary_reduction.py:57"
    if s.boundary_reduction != "auto":
        target = draft = s.boundary_reduction
    else:
        target = draft = _boundary(s.model.config, s.model.architecture) if s.model is not None else "rs+rsv"
        own = s.speculative_draft_model_path
        if s.speculative_algorithm is not None and own is not None and own != s.model_path and s.draft is not None:
            draft = _boundary(s.draft.config, s.draft.architecture or "")
    s.set("by architecture", where, boundary_reduction=target)
    s.set("by architecture of the draft", where, speculative_boundary_reduction=draft)


def _boundary(config: Mapping[str, Any], architecture: str) -> str:
    if architecture in _RSV:
        return "rsv"
    if architecture in _AR or config.get("model_type") in ("qwen3", "qwen3_vl_text"):
        return "ar"
    for key in ("text_config", "llm_config", "language_config"):
        text = config.get(key)
        if isinstance(text, Mapping):
            return _boundary(text, (text.get("architectures") or [""])[0])
    return "rs+rsv"


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
