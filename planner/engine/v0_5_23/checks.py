"""Disaggregation, what the model config refuses, load format, boundary reduction (pd_disaggregation_hook.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.engine.state import State
from planner.engine.v0_5_23.rare import prefill_complete

__all__ = [
    "boundary_reduction",
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


def _model_overrides(s: State) -> None:
    where = "configs/model_config.py:612"
    parser_known = s.model_config_parser in ("auto", "hf", "mistral", None)
    unknown = f"Unknown model-config parser '{s.model_config_parser}'. Registered: ['hf', 'mistral']"
    if not parser_known and s.version == "0.5.23":
        s.value_error(unknown, where)
    text = s.json_model_override_args
    if isinstance(text, str):
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            s.refuse("JSONDecodeError", str(error), where)
        if content and not isinstance(content, dict):
            s.refuse("AttributeError", f"'{type(content).__name__}' object has no attribute 'items'", where)
    if not parser_known:
        s.value_error(unknown, where)


def context_length(s: State) -> None:
    """The first look at the model's configuration: its overrides must be JSON, and a context longer than the model's is
    refused unless the environment allows it (model_config.py:612, 1291)."""
    _model_overrides(s)
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
