"""Questions that many rules ask of the state."""

from __future__ import annotations

from planner.engine.facts import ModelFacts
from planner.engine.state import State

__all__ = [
    "DEEPSEEK_FAMILY",
    "attention_backends",
    "attention_unset",
    "attn_dp_enabled",
    "is_multimodal",
    "mamba_extra_buffer",
    "uses_mla",
]

DEEPSEEK_FAMILY = frozenset(
    {
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "Dots3NoteForCausalLM",
        "Glm5NextForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "HYV4ForCausalLM",
        "HYV4ForCausalLMNextN",
        "KimiK25ForConditionalGeneration",
        "LongcatFlashForCausalLM",
        "LongcatFlashForCausalLMNextN",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
    }
)
"""Architectures that share DeepSeek's defaults (0.5.23 srt/arg_groups/overrides.py, _DEEPSEEK_FAMILY_ARCHS)."""

MULTIMODAL_OFF = frozenset(
    {
        "Gemma3ForConditionalGeneration",
        "InklingForConditionalGeneration",
        "Llama4ForConditionalGeneration",
        "Step3VLForConditionalGeneration",
    }
)
"""Multimodal classes that serve text only unless --enable-multimodal is given (model_config.py, ModelConfig)."""


def attention_backends(s: State) -> tuple[str | None, str | None]:
    """Backend of prefill and of decode."""
    return s.prefill_attention_backend or s.attention_backend, s.decode_attention_backend or s.attention_backend


def attention_unset(s: State) -> bool:
    """Whether no attention backend was given."""
    return s.attention_backend is None and s.prefill_attention_backend is None and s.decode_attention_backend is None


def attn_dp_enabled(s: State) -> bool:
    return int(s.attn_dp_size) > 1


def uses_mla(s: State) -> bool:
    return s.model is not None and s.model.is_mla


def is_multimodal(s: State, model: ModelFacts) -> bool:
    """Whether the engine serves images with this target."""
    if s.language_model_only:
        return False
    enabled = s.enable_multimodal
    if enabled is None:
        enabled = model.architecture not in MULTIMODAL_OFF
    return bool(enabled) and model.takes_media


def mamba_extra_buffer(s: State) -> bool:
    return s.disable_radix_cache is False and s.mamba_radix_cache_strategy in ("extra_buffer", "extra_buffer_lazy")
