"""Defaults and checks by architecture (model_hook.py, model_overrides/, overrides.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.engine.facts import ModelFacts
from planner.engine.state import State
from planner.engine.v0_5_23.default_backend import default_attention_backend
from planner.engine.v0_5_23.fusion import allreduce_fusion
from planner.engine.v0_5_23.mamba import mamba_radix_cache
from planner.engine.v0_5_23.rare import model_checks
from planner.engine.v0_5_23.sparse import dsa_defaults, dsa_overrides
from planner.engine.v0_5_23.view import (
    DEEPSEEK_FAMILY,
    attention_backends,
    attention_unset,
    is_multimodal,
    mamba_extra_buffer,
    uses_mla,
)

__all__ = ["capability_adjustments", "model_specific_adjustments"]

_HOOK = "arg_groups/model_hook.py:140"
Changes = dict[str, Any]

_QWEN_MOE = frozenset(
    {
        "InternS2PreviewForConditionalGeneration",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
    }
)
_QWEN_HYBRID = frozenset(
    {
        "InternS2MobiusForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "Qwen3NextForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
    }
)
_NO_CHUNKED_MULTIMODAL = frozenset(
    {
        "Grok1AForCausalLM",
        "Grok1VForCausalLM",
        "LlavaLlamaForCausalLM",
        "MllamaForConditionalGeneration",
        "MossVLForConditionalGeneration",
    }
)


def model_specific_adjustments(s: State) -> None:
    if s.enable_deterministic_inference:
        s.set("deterministic inference", _HOOK, enforce_disable_flashinfer_allreduce_fusion=True)
    s.set("set by hybrid models only", _HOOK, uses_mamba_radix_cache=False)
    model = s.model
    if model is None:
        s.notes.append("no model known: defaults that depend on its architecture are those of a plain dense model")
    else:
        if s.enable_dsa_cache_layer_split and not model.is_dsa:
            s.value_error(
                "--enable-dsa-cache-layer-split is only supported for DSA (DeepSeek Sparse Attention) models.", _HOOK
            )
        model_checks(s)
        _architecture_defaults(s, model)
        _architecture_checks(s, model)
        mamba_radix_cache(s, model)
    allreduce_fusion(s, model)


def _architecture_defaults(s: State, model: ModelFacts) -> None:
    """Declared defaults are computed from the state as it stands and take effect together."""
    changes: Changes = {}
    sources: list[str] = []
    for names, rule, where in _RULES:
        if model.architecture in names:
            found = rule(s, model)
            if found:
                changes |= found
                sources.append(where)
    if changes:
        s.set(f"default of {model.architecture} on {s.platform.id}", f"arg_groups/{sources[-1]}", **changes)


def _deepseek(s: State, model: ModelFacts) -> Changes:
    if model.is_dsa:
        return dsa_overrides(s)
    changes: Changes = {}
    if s.platform.sm100 and attention_unset(s):
        changes["attention_backend"] = "trtllm_mla"
    if s.enable_prefill_cp and uses_mla(s):
        attn_dp = s.attn_dp_size * s.dp_size
        changes |= {
            "attn_dp_size": attn_dp,
            "dp_size": 1,
            "moe_dense_tp_size": 1,
            "moe_a2a_backend": "deepep",
            "ep_size": s.tp_size,
            "attn_cp_size": s.tp_size // attn_dp,
        }
    return changes


def _qwen_moe(s: State, model: ModelFacts) -> Changes:
    changes: Changes = {}
    if not s.platform.sm100:
        return changes
    quantization = s.quantization
    if quantization is None and not s.values["_quantization_explicitly_unset"] and model.quant_method is not None:
        quantization = changes["quantization"] = model.quant_method
    fused = quantization in ("fp8", "modelopt_fp4", "modelopt_mixed", None)
    if fused and s.moe_a2a_backend == "none" and s.moe_runner_backend == "auto":
        changes["moe_runner_backend"] = "flashinfer_trtllm"
    return changes


def _qwen_hybrid(s: State, model: ModelFacts) -> Changes:
    if not s.platform.sm100 or s.attention_backend is not None:
        return {}
    backend = "triton"
    plain = not mamba_extra_buffer(s) and not s.disable_radix_cache and s.speculative_algorithm is None
    if default_attention_backend(s, model) == "trtllm_mha" and not plain:
        backend = "trtllm_mha"
    return {"attention_backend": backend, "page_size": 64 if backend == "trtllm_mha" else 1}


def _gpt_oss(s: State, model: ModelFacts) -> Changes:
    changes: Changes = {}
    if attention_unset(s):
        changes["attention_backend"] = "trtllm_mha" if s.platform.sm100 else "fa3" if s.platform.sm90 else "triton"
    mxfp4 = model.quant_method == "mxfp4"
    if mxfp4:
        changes["dtype"] = "bfloat16"
    if s.moe_runner_backend == "auto":
        if mxfp4 and (s.platform.sm100 or s.platform.sm120):
            changes["moe_runner_backend"] = "flashinfer_mxfp4"
        elif s.ep_size == 1 and s.quantization is None:
            s.notes.append("with the triton_kernels package the MoE runner of GPT-OSS becomes triton_kernel or triton")
    return changes


def _glm4_moe(s: State, model: ModelFacts) -> Changes:
    changes: Changes = {}
    if s.platform.sm100:
        quantization = s.quantization
        if quantization is None and not s.values["_quantization_explicitly_unset"] and model.quant_method is not None:
            quantization = changes["quantization"] = model.quant_method
        free = s.moe_a2a_backend == "none" and s.moe_runner_backend == "auto"
        if quantization in ("modelopt_fp4", None) and free:
            changes["moe_runner_backend"] = "flashinfer_trtllm"
    changes["enable_tf32_matmul"] = True
    return changes


def _llama4(s: State, _model: ModelFacts) -> Changes:
    changes: Changes = {}
    if s.attention_backend is None:
        changes["attention_backend"] = "trtllm_mha" if s.platform.sm100 else "fa3" if s.platform.sm90 else "triton"
    if s.platform.sm100 and s.moe_runner_backend == "auto" and s.quantization in ("fp8", "modelopt_fp8"):
        changes["moe_runner_backend"] = "flashinfer_trtllm"
    return changes


def _gemma4(s: State, model: ModelFacts) -> Changes:
    changes: Changes = {}
    if s.attention_backend is None:
        changes["attention_backend"] = "trtllm_mha" if s.platform.sm100 else "triton"
    quantization = s.quantization or model.quant_method
    if s.platform.sm100 and s.moe_runner_backend == "auto" and quantization == "modelopt_fp4":
        changes |= {"quantization": "modelopt_fp4", "moe_runner_backend": "flashinfer_trtllm"}
    return changes


def _minimax_m2(s: State, model: ModelFacts) -> Changes:
    changes: Changes = {"enable_tf32_matmul": True}
    quantization = s.quantization or model.quant_method
    if s.platform.sm100 and s.moe_runner_backend == "auto" and quantization == "modelopt_fp4":
        changes["moe_runner_backend"] = "flashinfer_trtllm_routed"
    return changes


def _mimo_v2(s: State, model: ModelFacts) -> Changes:
    changes: Changes = {}
    if s.speculative_algorithm == "EAGLE":
        changes["enable_multi_layer_eagle"] = True
    if s.platform.sm100 and attention_unset(s):
        changes["attention_backend"] = "fa4"
    fp8 = s.moe_runner_backend == "auto" and model.quant_method == "fp8"
    if s.platform.sm100 and fp8 and s.moe_a2a_backend == "none":
        changes["moe_runner_backend"] = "flashinfer_trtllm"
    return changes


def _step3p(s: State, _model: ModelFacts) -> Changes:
    changes: Changes = {}
    if attention_unset(s):
        if s.platform.blackwell:
            changes["attention_backend"] = "fa4"
        elif s.platform.sm90:
            changes["attention_backend"] = "fa3"
    if s.speculative_algorithm == "EAGLE":
        changes["enable_multi_layer_eagle"] = True
    if s.enable_hierarchical_cache:
        changes |= {"swa_full_tokens_ratio": 1.0, "disable_hybrid_swa_memory": True}
    return changes


def _fixed(**changes: Any) -> Callable[[State, ModelFacts], Changes]:
    return lambda _s, _model: dict(changes)


def _sm100_attention(backend: str) -> Callable[[State, ModelFacts], Changes]:
    return lambda s, _model: {"attention_backend": backend} if s.platform.sm100 and s.attention_backend is None else {}


def _olmo2(s: State, _model: ModelFacts) -> Changes:
    changes: Changes = {"disable_hybrid_swa_memory": True}
    if s.attention_backend is None:
        modern = (s.platform.sm or 0) >= 80
        changes["attention_backend"] = "trtllm_mha" if s.platform.sm100 else "fa3" if modern else "triton"
    return changes


_RULES: tuple[tuple[frozenset[str], Callable[[State, ModelFacts], Changes], str], ...] = (
    (DEEPSEEK_FAMILY, _deepseek, "model_overrides/deepseek_v2.py:185"),
    (
        frozenset({"MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"}),
        _fixed(dtype="bfloat16"),
        "model_override_base.py:24",
    ),
    (_QWEN_MOE, _qwen_moe, "model_overrides/qwen3_moe.py:33"),
    (_QWEN_HYBRID, _qwen_hybrid, "model_overrides/qwen3_5.py:14"),
    (frozenset({"GptOssForCausalLM"}), _gpt_oss, "model_overrides/gpt_oss.py:24"),
    (frozenset({"Glm4MoeForCausalLM"}), _glm4_moe, "model_overrides/glm4_moe.py:12"),
    (frozenset({"Llama4ForCausalLM", "Llama4ForConditionalGeneration"}), _llama4, "model_overrides/llama4.py:12"),
    (
        frozenset({"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration"}),
        _gemma4,
        "model_overrides/gemma4.py:14",
    ),
    (
        frozenset(
            {
                "Gemma2ForCausalLM",
                "Gemma3ForCausalLM",
                "Gemma3ForConditionalGeneration",
                "Gemma3nForCausalLM",
                "Gemma3nForConditionalGeneration",
            }
        ),
        _fixed(disable_hybrid_swa_memory=True),
        "model_overrides/gemma2_gemma3.py:12",
    ),
    (frozenset({"MiniMaxM2ForCausalLM"}), _minimax_m2, "model_overrides/minimax_m2.py:12"),
    (frozenset({"MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"}), _mimo_v2, "model_overrides/mimo_v2.py:12"),
    (frozenset({"Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"}), _step3p, "overrides.py:336"),
    (frozenset({"Olmo2ForCausalLM"}), _olmo2, "model_overrides/olmo2.py:10"),
    (
        frozenset(
            {
                "FalconH1ForCausalLM",
                "JetNemotronForCausalLM",
                "JetVLMForConditionalGeneration",
                "MiniCPMV4_6ForConditionalGeneration",
                "MiniCPMV4_7ForConditionalGeneration",
            }
        ),
        _sm100_attention("triton"),
        "model_overrides/falcon_h1.py:8",
    ),
    (frozenset({"Lfm2ForCausalLM", "Lfm2MoeForCausalLM"}), _sm100_attention("flashinfer"), "model_overrides/lfm2.py:8"),
)


def _architecture_checks(s: State, model: ModelFacts) -> None:
    architecture = model.architecture
    if architecture in DEEPSEEK_FAMILY - {"HYV4ForCausalLMNextN", "LongcatFlashForCausalLMNextN"}:
        if model.is_dsa:
            dsa_defaults(s, model)
        elif s.enable_prefill_cp and uses_mla(s):
            s.set_graph("context parallelism of MLA", _HOOK, "prefill", backend="disabled")
        _deepseek_moe(s, model)
    prefill, decode = attention_backends(s)
    if architecture == "GptOssForCausalLM":
        allowed = ["triton", "trtllm_mha", "fa3", "fa4", "ascend", "intel_amx", "intel_xpu", "aiter"]
        s.require(
            prefill in allowed and decode in allowed,
            f"GptOssForCausalLM requires one of {allowed} attention backend, but got the following backends\n"
            f"- Prefill: {prefill}\n- Decode: {decode}\n",
            _HOOK,
        )
    if architecture in ("Llama4ForCausalLM", "Llama4ForConditionalGeneration"):
        s.require(
            s.attention_backend in ("fa3", "aiter", "triton", "ascend", "trtllm_mha", "intel_xpu"),
            "fa3, aiter, triton, ascend, trtllm_mha or intel_xpu is required for Llama4 model but got "
            f"{s.attention_backend}",
            _HOOK,
        )
    if architecture.startswith("Gemma4"):
        allowed = ["trtllm_mha", "triton", "fa4", "ascend", "intel_xpu", "intel_amx", "aiter"]
        s.require(
            prefill in allowed and decode in allowed,
            "Gemma4 only supports trtllm_mha, triton, fa4, ascend, intel_xpu, intel_amx, or aiter attention backend, "
            f"got prefill={prefill}, decode={decode}",
            _HOOK,
        )
    if architecture == "Olmo2ForCausalLM":
        s.require(
            s.attention_backend != "flashinfer",
            "FlashInfer backend can significantly degrade the performance of Olmo3 models.",
            _HOOK,
        )
    if architecture in ("Lfm2ForCausalLM", "Lfm2MoeForCausalLM"):
        s.require(
            s.attention_backend != "triton",
            f"{architecture} does not support triton attention backend, as the first layer might not be an attention "
            "layer",
            _HOOK,
        )


def _deepseek_moe(s: State, model: ModelFacts) -> None:
    """Quantisation and MoE runner of the DeepSeek family on sm_100 and sm_103 (overrides.py:764)."""
    if not s.platform.sm100:
        return
    where = "arg_groups/overrides.py:764"
    quantization = s.quantization
    if quantization is None and not s.values["_quantization_explicitly_unset"]:
        if model.quant_method is None and model.architecture == "DeepseekV3ForCausalLM":
            s.notes.append(
                "SGLang looks for FP8 expert weights in the checkpoint; found ones make quantization fp8 on sm_100"
            )
        else:
            quantization = model.quant_method
            s.set("as in config.json", where, quantization=quantization)
    fused = quantization in ("fp8", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed", None) or model.kimi_int4
    longcat = model.architecture.startswith("LongcatFlash")
    if s.moe_a2a_backend == "none" and s.moe_runner_backend == "auto" and not longcat and fused:
        s.set("default of the DeepSeek family on sm_100 and sm_103", where, moe_runner_backend="flashinfer_trtllm")


def capability_adjustments(s: State) -> None:
    model = s.model
    if model is None:
        return
    if is_multimodal(s, model) and model.architecture in _NO_CHUNKED_MULTIMODAL:
        s.set("this model takes no chunks", "arg_groups/model_hook.py:751", chunked_prefill_size=-1)
    if s.enable_encoder_swa_bounded_replay:
        s.value_error("--enable-encoder-swa-bounded-replay requires DeepSeek-V4.1", "arg_groups/model_hook.py:751")
