"""Hybrid models with a recurrent state: radix cache strategy (overrides.py:454, mamba_hook.py)."""

from __future__ import annotations

from planner.engine.facts import ModelFacts
from planner.engine.state import State
from planner.engine.v0_5_23.view import mamba_extra_buffer

__all__ = ["linear_attention", "mamba_backend", "mamba_radix_cache"]

_RADIX = frozenset(
    {
        "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM",
        "BailingMoeV3VLForConditionalGeneration",
        "FalconH1ForCausalLM",
        "Glm5NextForConditionalGeneration",
        "InternS2MobiusForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "JetNemotronForCausalLM",
        "JetVLMForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "KimiLinearForCausalLM",
        "Lfm2ForCausalLM",
        "Lfm2MoeForCausalLM",
        "MiniCPMV4_6ForConditionalGeneration",
        "MiniCPMV4_7ForConditionalGeneration",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "NemotronH_Omni_Reasoning_V3",
        "Qwen3NextForCausalLM",
        "Qwen3_5ForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
        "ZayaForCausalLM",
    }
)
_EXTRA_BUFFER = _RADIX - {
    "InternS2MobiusForConditionalGeneration",
    "JetNemotronForCausalLM",
    "JetVLMForConditionalGeneration",
    "Lfm2ForCausalLM",
    "Lfm2MoeForCausalLM",
    "ZayaForCausalLM",
}


def mamba_radix_cache(s: State, model: ModelFacts) -> None:
    where = "arg_groups/overrides.py:454"
    hybrid = model.architecture in _RADIX
    if hybrid and not s.disable_radix_cache:
        s.set("hybrid model", where, uses_mamba_radix_cache=True)
        if s.mamba_radix_cache_strategy == "auto":
            wants = not s.disable_overlap_schedule or (s.page_size or 0) > 1
            if wants and model.architecture in _EXTRA_BUFFER and s.linear_attn_backend == "triton":
                s.set("keeps the overlap scheduler and pages", where, mamba_radix_cache_strategy="extra_buffer")
            else:
                s.set(
                    "no extra buffer for this model",
                    where,
                    mamba_radix_cache_strategy="no_buffer",
                    disable_overlap_schedule=True,
                )
    if not s.uses_mamba_radix_cache:
        if mamba_extra_buffer(s):
            s.value_error(
                f"--mamba-radix-cache-strategy {s.mamba_radix_cache_strategy} needs mamba state, got "
                f"{model.architecture}.",
                "arg_groups/model_hook.py:1048",
            )
        return
    _validate(s, model)


def _validate(s: State, model: ModelFacts) -> None:
    where = "arg_groups/mamba_hook.py:115"
    if mamba_extra_buffer(s):
        s.require(
            model.architecture in _EXTRA_BUFFER and s.linear_attn_backend == "triton",
            f"extra_buffer is not supported for {model.architecture}; use no_buffer.",
            where,
        )
        if s.mamba_radix_cache_strategy == "extra_buffer_lazy":
            s.require(
                s.disaggregation_mode == "null",
                "extra_buffer_lazy unsupported under PD disaggregation; use --mamba-radix-cache-strategy extra_buffer.",
                where,
            )
        if s.speculative_num_draft_tokens is not None:
            s.require(s.mamba_track_interval >= s.speculative_num_draft_tokens, "", where)
        if s.page_size is not None:
            s.require(s.mamba_track_interval % s.page_size == 0, "", where)
            chunk = int(model.config.get("mamba_chunk_size", 64))
            s.require(
                max(chunk, s.page_size) % min(chunk, s.page_size) == 0,
                "For SSM models, either chunk_size or page_size must be divisible by the other, got "
                f"chunk_size={chunk!r}, page_size={s.page_size!r}",
                "arg_groups/overrides.py:1897",
            )
        return
    s.require(s.page_size in (1, None), "no_buffer only supports page_size=1.", where)
    s.require(
        bool(s.disable_overlap_schedule),
        "no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.",
        where,
    )
    s.require(s.attention_backend != "trtllm_mha", "no_buffer do not support trtllm_mha attention backend.", where)


def mamba_backend(s: State) -> None:
    where = "arg_groups/mamba_hook.py:19"
    if s.mamba_cache_philox_rounds < 0:
        s.value_error("--mamba-cache-philox-rounds must be non-negative.", where)
    if s.mamba_max_states_per_path == 0 or s.mamba_max_states_per_path < -1:
        s.value_error(
            "--mamba-max-states-per-path must be -1 (unlimited) or a positive integer, got "
            f"{s.mamba_max_states_per_path}.",
            where,
        )
    if s.enable_mamba_cache_stochastic_rounding and s.mamba_ssm_dtype != "float16":
        s.value_error(
            "Stochastic rounding for the Mamba SSM cache requires --mamba-ssm-dtype float16, got "
            f"{s.mamba_ssm_dtype!r}.",
            where,
        )


def linear_attention(s: State) -> None:
    where = "arg_groups/attention_hook.py:281"
    if (
        s.linear_attn_decode_backend is None
        and s.linear_attn_backend != "helion"
        and s.platform.sm100
        and s.mamba_ssm_dtype == "bfloat16"
    ):
        s.set("bfloat16 state on sm_100", where, linear_attn_decode_backend="flashinfer")
    decode = s.linear_attn_decode_backend or s.linear_attn_backend
    if decode == "flashkda":
        if s.linear_attn_decode_backend == "flashkda":
            s.value_error("--linear-attn-decode-backend flashkda is not supported: FlashKDA is prefill-only.", where)
        s.set("FlashKDA is for prefill only", where, linear_attn_decode_backend="triton")
        decode = "triton"
    if decode == "flashinfer" and s.mamba_ssm_dtype != "bfloat16" and s.platform.major >= 10:
        s.value_error(
            "--linear-attn-decode-backend flashinfer on SM100+ requires --mamba-ssm-dtype bfloat16, got "
            f"{s.mamba_ssm_dtype!r}",
            where,
        )
    verify = s.linear_attn_verify_backend or ("flashinfer" if decode == "flashinfer" else None)
    if verify == "flashinfer" and s.mamba_ssm_dtype != "bfloat16" and s.platform.major >= 10:
        s.value_error(
            "--linear-attn-verify-backend flashinfer on SM100+ requires --mamba-ssm-dtype bfloat16, got "
            f"{s.mamba_ssm_dtype!r}",
            where,
        )
