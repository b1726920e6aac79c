"""All-reduce fusion by architecture, GPU and parallel sizes (overrides.py:926)."""

from __future__ import annotations

from planner.engine.facts import ModelFacts
from planner.engine.state import State
from planner.engine.v0_5_23.view import attn_dp_enabled

__all__ = ["allreduce_fusion"]

_FUSION = frozenset(
    {
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
        "GptOssForCausalLM",
        "InternS2PreviewForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "MistralLarge3ForCausalLM",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "NemotronH_Omni_Reasoning_V3",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
    }
)
"""Architectures whose all-reduce is fused by default (0.5.23 srt/arg_groups/overrides.py:926)."""


def allreduce_fusion(s: State, model: ModelFacts | None) -> None:
    where = "arg_groups/overrides.py:955"
    if (
        s.flashinfer_allreduce_fusion_backend is None
        and model is not None
        and model.architecture in _FUSION
        and (s.platform.sm90 or s.platform.sm100)
        and s.tp_size > 1
        and not attn_dp_enabled(s)
        and (s.nnodes == 1 or s.platform.sm100)
        and s.moe_a2a_backend == "none"
    ):
        s.set("fused by default for this model on NVLink", where, flashinfer_allreduce_fusion_backend="auto")
    if s.enforce_disable_flashinfer_allreduce_fusion:
        s.set(
            "--enforce-disable-flashinfer-allreduce-fusion wins",
            "arg_groups/overrides.py:1006",
            flashinfer_allreduce_fusion_backend=None,
        )
