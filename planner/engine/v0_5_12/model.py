"""Defaults and checks by architecture (server_args.py:1780-2490)."""

from __future__ import annotations

from planner.engine.facts import ModelFacts
from planner.engine.state import State
from planner.engine.v0_5_12.hybrid import mamba_radix_cache
from planner.engine.v0_5_12.view import attention_backends, attention_unset, default_attention_backend

__all__ = ["model_specific_adjustments"]

_WHERE = "server_args.py:1780"
_DEEPSEEK = frozenset(
    {
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "GlmMoeDsaForCausalLM",
        "KimiK25ForConditionalGeneration",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
    }
)
_QWEN_MOE = frozenset(
    {
        "InternS2PreviewForConditionalGeneration",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
    }
)
_QWEN_HYBRID = _QWEN_MOE - {"Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration"}
_FUSION = frozenset(
    {
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
        "GptOssForCausalLM",
        "InternS2PreviewForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
    }
)


def model_specific_adjustments(s: State) -> None:
    model = s.model
    if model is None:
        s.notes.append("no model known: defaults that depend on its architecture are those of a plain dense model")
        _allreduce_fusion(s, None)
        return
    name = model.architecture
    if name in ("MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"):
        s.set(f"default of {name}", _WHERE, dtype="bfloat16")
    if name in _DEEPSEEK:
        _deepseek(s, model)
    elif name == "GptOssForCausalLM":
        _gpt_oss(s, model)
    elif name in ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM") or "Step3p5ForCausalLM" in name:
        if s.speculative_algorithm == "EAGLE":
            s.set(f"default of {name}", _WHERE, enable_multi_layer_eagle=True)
        if s.enable_hierarchical_cache:
            s.set(f"default of {name}", _WHERE, swa_full_tokens_ratio=1.0, disable_hybrid_swa_memory=True)
    elif name in ("Llama4ForConditionalGeneration", "Llama4ForCausalLM"):
        _llama4(s)
    elif name.startswith(("Gemma2", "Gemma3")) and not name.endswith("Classification"):
        s.set(f"default of {name}", _WHERE, disable_hybrid_swa_memory=True)
    elif name == "Gemma4ForConditionalGeneration":
        if attention_unset(s):
            s.set(f"default of {name}", _WHERE, attention_backend="triton")
    elif name == "Olmo2ForCausalLM":
        _olmo2(s)
    elif name in ("KimiLinearForCausalLM", "BailingMoeV2_5ForCausalLM"):
        mamba_radix_cache(s, name, cache=False)
    elif name in _QWEN_MOE:
        _qwen_moe(s, model)
    elif name == "MiniCPMV4_6ForConditionalGeneration":
        mamba_radix_cache(s, name, sm100="triton")
    elif name == "Glm4MoeForCausalLM":
        _from_config(s, model)
        if s.platform.sm100 and s.quantization == "modelopt_fp4":
            _trtllm_runner(s)
    elif name in ("FalconH1ForCausalLM", "JetNemotronForCausalLM", "JetVLMForConditionalGeneration"):
        mamba_radix_cache(s, name, extra_buffer=False, sm100="triton")
    elif name == "Lfm2ForCausalLM":
        mamba_radix_cache(s, name, extra_buffer=False, sm100="flashinfer")
        s.require(
            s.attention_backend != "triton",
            f"{name} does not support triton attention backend, as the first layer might not be an attention layer",
            _WHERE,
        )
    _allreduce_fusion(s, model)


def _from_config(s: State, model: ModelFacts) -> None:
    """Quantisation of the checkpoint, written into the arguments on sm_100 and sm_103."""
    unset = s.values["_quantization_explicitly_unset"]
    if s.platform.sm100 and s.quantization is None and not unset and model.quant_method is not None:
        s.set("as in config.json", _WHERE, quantization=model.quant_method)


def _trtllm_runner(s: State) -> None:
    if s.moe_a2a_backend == "none" and s.moe_runner_backend == "auto":
        s.set("default of this model on sm_100 and sm_103", _WHERE, moe_runner_backend="flashinfer_trtllm")


def _deepseek(s: State, model: ModelFacts) -> None:
    if model.is_dsa:
        _sparse(s)
    elif s.platform.sm100 and attention_unset(s):
        s.set(
            "default of the DeepSeek family on sm_100 and sm_103", "server_args.py:1898", attention_backend="trtllm_mla"
        )
    if not s.platform.sm100:
        return
    unset = s.values["_quantization_explicitly_unset"]
    if s.quantization is None and not unset:
        if model.quant_method is None and model.architecture == "DeepseekV3ForCausalLM":
            s.notes.append(
                "SGLang looks for FP8 expert weights in the checkpoint; found ones make quantization fp8 on sm_100"
            )
        else:
            s.set("as in config.json", "server_args.py:1915", quantization=model.quant_method)
    fused = ("fp8", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed", None)
    if s.quantization in fused or model.kimi_int4:
        _trtllm_runner(s)


def _sparse(s: State) -> None:
    """DeepSeek sparse attention."""
    where = "server_args.py:1835"
    if attention_unset(s):
        s.set("sparse attention", where, attention_backend="nsa")
    if s.enable_nsa_prefill_context_parallel:
        s.set("context parallelism", where, enable_dp_attention=True, moe_dense_tp_size=1)
        if s.nsa_prefill_cp_mode == "in-seq-split":
            s.set("context parallelism", where, moe_a2a_backend="deepep", ep_size=s.tp_size)
        else:
            s.require(s.dp_size == 1, "For round-robin split mode, dp attention is not supported.", where)
        s.require(
            s.tp_size <= 8,
            "Context parallel only supports single machine (tp_size <= 8). Cross-machine CP has precision issues.",
            where,
        )
        s.set("context parallelism", where, attn_cp_size=s.tp_size // s.dp_size)
    s.set("sparse attention", where, page_size=64)
    blackwell = s.platform.major >= 10
    kv = s.kv_cache_dtype
    if kv == "auto":
        kv = "fp8_e4m3" if blackwell else "bfloat16"
    kv = "bfloat16" if kv == "bf16" else kv
    s.set("sparse attention: FP8 from sm_100 on", "server_args.py:1620", kv_cache_dtype=kv)
    s.require(
        kv in ("bfloat16", "fp8_e4m3"),
        "DeepSeek DSA only supports bf16/bfloat16 or fp8_e4m3 kv_cache_dtype",
        "server_args.py:1620",
    )
    if s.enable_hisparse:
        prefill = decode = "flashmla_kv" if kv == "fp8_e4m3" else "flashmla_sparse"
    elif kv == "fp8_e4m3":
        prefill = decode = "trtllm" if blackwell else "flashmla_kv"
    else:
        prefill, decode = "flashmla_sparse", "trtllm" if blackwell else "fa3"
    if s.nsa_prefill_backend is None:
        s.set("by KV type and GPU", "server_args.py:1640", nsa_prefill_backend=prefill)
    if s.nsa_decode_backend is None:
        s.set("by KV type and GPU", "server_args.py:1640", nsa_decode_backend=decode)
    if s.enable_nsa_prefill_context_parallel:
        s.require(
            s.disaggregation_mode != "decode",
            "CP is only supported for prefill when PD disaggregation, please remove "
            "--enable-nsa-prefill-context-parallel.",
            where,
        )


def _gpt_oss(s: State, model: ModelFacts) -> None:
    if attention_unset(s):
        backend = "trtllm_mha" if s.platform.sm100 else "fa3" if s.platform.sm90 else "triton"
        s.set("default of GPT-OSS", _WHERE, attention_backend=backend)
    allowed = ["triton", "trtllm_mha", "fa3", "fa4", "ascend", "intel_xpu", "aiter"]
    prefill, decode = attention_backends(s)
    s.require(
        prefill in allowed and decode in allowed,
        f"GptOssForCausalLM requires one of {allowed} attention backend, but got the following backends\n"
        f"- Prefill: {prefill}\n- Decode: {decode}\n",
        _WHERE,
    )
    mxfp4 = model.quant_method == "mxfp4"
    if mxfp4:
        s.set("MXFP4 checkpoint", _WHERE, dtype="bfloat16")
    if s.moe_runner_backend == "auto":
        if mxfp4 and s.platform.sm100:
            s.set("MXFP4 checkpoint", _WHERE, moe_runner_backend="flashinfer_mxfp4")
        elif mxfp4 and s.platform.sm120:
            s.set("MXFP4 checkpoint", _WHERE, moe_runner_backend="triton_kernel")
        elif s.ep_size == 1 and s.quantization is None:
            s.notes.append("with the triton_kernels package the MoE runner of GPT-OSS becomes triton_kernel or triton")
    if s.moe_runner_backend == "triton_kernel":
        s.require(s.ep_size == 1, "Triton kernel MoE is only supported when ep_size == 1", _WHERE)


def _llama4(s: State) -> None:
    if s.attention_backend is None:
        backend = "trtllm_mha" if s.platform.sm100 else "fa3" if s.platform.sm90 else "triton"
        s.set("default of Llama 4", _WHERE, attention_backend=backend)
    s.require(
        s.attention_backend in ("fa3", "aiter", "triton", "ascend", "trtllm_mha", "intel_xpu"),
        "fa3, aiter, triton, ascend, trtllm_mha or intel_xpu is required for Llama4 model but got "
        f"{s.attention_backend}",
        _WHERE,
    )
    if s.platform.sm100 and s.moe_runner_backend == "auto" and s.quantization in ("fp8", "modelopt_fp8"):
        s.set("default of Llama 4", _WHERE, moe_runner_backend="flashinfer_trtllm")


def _olmo2(s: State) -> None:
    s.set("default of Olmo 2", _WHERE, disable_hybrid_swa_memory=True)
    if s.attention_backend is None:
        modern = (s.platform.sm or 0) >= 80
        backend = "trtllm_mha" if s.platform.sm100 else "fa3" if modern else "triton"
        s.set("default of Olmo 2", _WHERE, attention_backend=backend)
    s.require(
        s.attention_backend != "flashinfer",
        "FlashInfer backend can significantly degrade the performance of Olmo3 models.",
        _WHERE,
    )


def _qwen_moe(s: State, model: ModelFacts) -> None:
    if s.platform.sm100:
        _from_config(s, model)
        if s.quantization in ("fp8", "modelopt_fp4", None):
            _trtllm_runner(s)
    if model.architecture in _QWEN_HYBRID:
        backend = "triton"
        plain = (
            s.mamba_scheduler_strategy != "extra_buffer"
            and not s.disable_radix_cache
            and s.speculative_algorithm is None
        )
        if s.platform.sm100 and default_attention_backend(s, model) == "trtllm_mha" and not plain:
            backend = "trtllm_mha"
        mamba_radix_cache(s, model.architecture, sm100=backend)


def _allreduce_fusion(s: State, model: ModelFacts | None) -> None:
    where = "server_args.py:2461"
    if (
        not s.enable_flashinfer_allreduce_fusion
        and model is not None
        and model.architecture in _FUSION
        and (s.platform.sm90 or s.platform.sm100)
        and s.tp_size > 1
        and not s.enable_dp_attention
        and s.nnodes == 1
        and s.moe_a2a_backend == "none"
    ):
        s.set("fused by default for this model on NVLink", where, enable_flashinfer_allreduce_fusion=True)
    if s.enforce_disable_flashinfer_allreduce_fusion:
        s.set("--enforce-disable-flashinfer-allreduce-fusion wins", where, enable_flashinfer_allreduce_fusion=False)
