"""The attention backend that the engine takes when none is given (model_override_base.py:277)."""

from __future__ import annotations

from planner.engine.facts import ModelFacts
from planner.engine.state import State

__all__ = ["default_attention_backend"]


def default_attention_backend(s: State, model: ModelFacts | None) -> str:
    """Backend by GPU, attention kind and speculation."""
    if model is not None and "WhisperForConditionalGeneration" in model.architectures:
        return "flashinfer"
    platform = s.platform
    if model is not None and model.is_mla:
        if platform.hopper_cuda_12:
            return "fa3"
        return "flashinfer" if platform.sm100 else "triton"
    topk = s.speculative_eagle_topk
    single = topk is None or (topk == 1 and s.page_size in (None, 1))
    if platform.hopper_cuda_12 and single:
        return "fa3"
    known_chain = (
        s.speculative_algorithm is None or topk is not None or str(s.speculative_algorithm).upper() == "DFLASH"
    )
    if platform.sm100 and single and known_chain:
        return "fa4" if model is not None and model.asymmetric_kv else "trtllm_mha"
    if platform.hip:
        return "aiter"
    return "triton" if model is not None and model.has_sinks else "flashinfer"
