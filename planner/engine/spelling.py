"""One name for one thing: destinations that were renamed between versions, in both directions."""

from __future__ import annotations

from planner.engine.flag_table import FlagTable

__all__ = ["OLD_NAMES", "dest_in_version", "field_of_dest"]

OLD_NAMES = {
    "attention_context_parallel_size": "attn_cp_size",
    "cuda_graph_bs": "cuda_graph_bs_decode",
    "cuda_graph_max_bs": "cuda_graph_max_bs_decode",
    "data_parallel_size": "dp_size",
    "disable_piecewise_cuda_graph": "disable_prefill_cuda_graph",
    "enable_deepep_waterfill": "enable_waterfill",
    "enable_nsa_prefill_context_parallel": "enable_dsa_prefill_context_parallel",
    "expert_parallel_size": "ep_size",
    "mamba_scheduler_strategy": "mamba_radix_cache_strategy",
    "moe_data_parallel_size": "moe_dp_size",
    "nsa_decode_backend": "dsa_decode_backend",
    "nsa_prefill_backend": "dsa_prefill_backend",
    "nsa_prefill_cp_mode": "dsa_prefill_cp_mode",
    "optimistic_prefill_retries": "optimistic_prefill_attempts",
    "piecewise_cuda_graph_max_tokens": "cuda_graph_max_bs_prefill",
    "piecewise_cuda_graph_tokens": "cuda_graph_bs_prefill",
    "pipeline_parallel_size": "pp_size",
    "speculative_dflash_draft_window_size": "speculative_draft_window_size",
    "tensor_parallel_size": "tp_size",
}
"""Destination of an older parser -> name in the newest table (what :class:`planner.domain.LaunchConfig` uses)."""
_NEW_TO_OLD: dict[str, tuple[str, ...]] = {}
for _old, _new in OLD_NAMES.items():
    _NEW_TO_OLD[_new] = (*_NEW_TO_OLD.get(_new, ()), _old)


def field_of_dest(dest: str, table: FlagTable) -> str:
    """Field name for a destination of that table's parser."""
    new = OLD_NAMES.get(dest, dest)
    return dest if new != dest and new in table.by_dest else new


def dest_in_version(field: str, table: FlagTable) -> str | None:
    """Destination in that table's parser for a field, or None when the version has no such argument."""
    if field in table.by_dest:
        return field
    return next((old for old in _NEW_TO_OLD.get(field, ()) if old in table.by_dest), None)
