"""Hybrid models with a recurrent state (server_args.py:2478)."""

from __future__ import annotations

from planner.engine.state import State

__all__ = ["mamba_radix_cache"]


def mamba_radix_cache(
    s: State, architecture: str, *, cache: bool = True, extra_buffer: bool = True, sm100: str | None = None
) -> None:
    """Radix cache and overlap of a hybrid model. ``sm100``: its attention backend on sm_100 and sm_103."""
    where = "server_args.py:2478"
    if s.platform.sm100 and s.attention_backend is None and sm100 is not None:
        s.set(f"default of {architecture}", where, attention_backend=sm100)
    if not cache:
        s.set("this model has no radix cache", where, disable_radix_cache=True)
        return
    buffered = s.mamba_scheduler_strategy == "extra_buffer"
    if not extra_buffer:
        s.require(not buffered, f"mamba extra_buffer is not supported for {architecture} model", where)
    if buffered:
        if s.disable_radix_cache:
            s.value_error(
                "mamba extra_buffer is not compatible with --disable-radix-cache Overlap scheduling is already "
                "supported with no_buffer + disable_radix_cache. Please use --mamba-scheduler-strategy no_buffer "
                "instead.",
                where,
            )
        tokens, interval = s.speculative_num_draft_tokens, s.mamba_track_interval
        s.require(
            tokens is None or interval >= tokens,
            f"mamba_track_interval {interval} must be greater than or equal to speculative_num_draft_tokens {tokens}",
            where,
        )
        if s.page_size is not None:
            s.require(
                interval % s.page_size == 0,
                f"mamba_track_interval {interval} must be divisible by page_size {s.page_size}",
                where,
            )
        return
    if s.disable_radix_cache:
        return
    if s.page_size not in (None, 1):
        s.set("no_buffer takes pages of 1", where, page_size=1)
    if s.speculative_algorithm is None:
        s.set("no_buffer runs without overlap", where, disable_overlap_schedule=True)
        if s.attention_backend == "trtllm_mha":
            s.set("no_buffer with trtllm_mha", where, disable_radix_cache=True, disable_overlap_schedule=False)
    else:
        s.value_error(
            f"Speculative decoding for {architecture} is not compatible with radix cache when using "
            "--mamba-scheduler-strategy no_buffer.To use radix cache with speculative decoding, please use "
            "--mamba-scheduler-strategy extra_buffer and set SGLANG_ENABLE_SPEC_V2=1.",
            where,
        )
