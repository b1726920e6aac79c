"""Questions that several rules of 0.5.12.post1 ask."""

from __future__ import annotations

from planner.engine.facts import ModelFacts
from planner.engine.state import State

__all__ = ["attention_backends", "attention_unset", "default_attention_backend"]


def attention_backends(s: State) -> tuple[str | None, str | None]:
    """Backend of prefill and of decode."""
    return s.prefill_attention_backend or s.attention_backend, s.decode_attention_backend or s.attention_backend


def attention_unset(s: State) -> bool:
    """Whether no attention backend was given."""
    return s.attention_backend is None and s.prefill_attention_backend is None and s.decode_attention_backend is None


def default_attention_backend(s: State, model: ModelFacts | None) -> str:
    """Backend where none is given (server_args.py:2530)."""
    if model is not None and "WhisperForConditionalGeneration" in model.architectures:
        return "flashinfer"
    if model is not None and model.is_mla:
        if s.platform.sm90:
            return "fa3"
        return "flashinfer" if s.platform.sm100 else "triton"
    topk = s.speculative_eagle_topk
    single = topk is None or (topk == 1 and s.page_size in (None, 1))
    if s.platform.sm90 and single:
        return "fa3"
    if s.platform.sm100 and single and (s.speculative_algorithm is None or topk is not None):
        return "trtllm_mha"
    if s.platform.hip:
        return "aiter"
    return "triton" if model is not None and model.has_sinks else "flashinfer"
