"""Candidates in a few words, the same words wherever one is named."""

from __future__ import annotations

from planner.domain.launch import Candidate, Speculation

__all__ = ["describe", "draft_words", "layout_words"]


def describe(candidate: Candidate) -> str:
    """``tree budget 8, topk 4 (q_len 9), TP8 + NVLS, triton, graphs on, max_running_requests 64``."""
    return f"{draft_words(candidate)}, {layout_words(candidate)}, max_running_requests {candidate.max_running_requests}"


def draft_words(candidate: Candidate) -> str:
    """``tree budget 8, topk 4 (q_len 9)``."""
    if candidate.speculation is Speculation.OFF:
        return "speculation off"
    if candidate.speculation is Speculation.CHAIN:
        return f"chain of {candidate.budget} (q_len {candidate.q_len})"
    return f"tree budget {candidate.budget}, topk {candidate.topk} (q_len {candidate.q_len})"


def layout_words(candidate: Candidate) -> str:
    """``TP8 + NVLS, triton, graphs on``; replicas, EP, attention DP, fusion and FP8 KV where they are chosen."""
    parts = [f"{candidate.replicas} x TP{candidate.tp_size}" if candidate.replicas > 1 else f"TP{candidate.tp_size}"]
    parts += [f"EP{candidate.ep_size}"] if candidate.ep_size > 1 else []
    parts += [f"attention DP{candidate.attention_dp_size}"] if candidate.attention_dp_size > 1 else []
    parts += ["NVLS"] if candidate.enable_nccl_nvls else []
    parts += ["all-reduce fusion"] if candidate.allreduce_fusion else []
    parts += ["FP8 KV"] if candidate.kv_cache_dtype != "bf16" else []
    return f"{' + '.join(parts)}, {candidate.attention_backend}, graphs {'on' if candidate.cuda_graph else 'off'}"
