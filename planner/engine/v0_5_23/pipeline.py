"""The rules of 0.5.23 in the engine's order (srt/arg_groups/pipeline.py), then its final checks."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23 import (
    all_to_all,
    attention,
    checks,
    final,
    graphs,
    kv_cache,
    mamba,
    memory,
    model,
    moe,
    parallel,
    rare,
    serving,
    speculative,
)

__all__ = ["FALLBACKS", "run"]

FALLBACKS = {
    "enable_tf32_matmul": False,
    "mamba_full_memory_ratio": 0.9,
    "mm_enable_dp_encoder": False,
    "swa_full_tokens_ratio": 0.8,
}
"""Values that stand where resolution leaves None (``Arg(fallback=...)`` in srt/arg_groups/fields)."""


def run(s: State) -> None:
    """Resolves in place.

    Raises:
        EngineRefusal: where the engine raises.
    """
    parallel.deprecated_dp_attention(s)
    moe.mega_moe(s)
    serving.early_checks(s)
    serving.hicache_ratio(s)
    memory.offload_compatibility(s)
    serving.early_ranges(s)
    serving.aux_hidden_states(s)
    serving.ssl_and_requests(s)
    serving.deprecated(s)
    serving.defaults(s)
    checks.pd_disaggregation(s)
    kv_cache.prefill_only_args(s)
    parallel.decode_context_parallelism(s)
    checks.model_config(s)
    rare.dwdp(s)
    graphs.configure(s)
    memory.gpu_memory_settings(s)
    model.model_specific_adjustments(s)
    if s.prefill_decode_interval is None:
        s.set("default", "arg_groups/validation_hook.py:665", prefill_decode_interval=0)
    memory.offload_compatibility(s)
    attention.sampling_backend(s)
    attention.deterministic(s)
    attention.nvfp4_prefill(s)
    attention.backend_compatibility(s)
    graphs.deepseek_trtllm_mla(s)
    mamba.mamba_backend(s)
    mamba.linear_attention(s)
    rare.linear_replay(s)
    kv_cache.fp4_compatibility(s)
    attention.page_size_default(s)
    serving.grammar_and_balance(s)
    attention.multi_item_scoring(s)
    kv_cache.prefill_only_backend(s)
    serving.hicache(s)
    parallel.data_parallelism(s)
    serving.load_balance(s)
    parallel.context_parallelism(s)
    rare.kv_sharding(s)
    moe.kernel_config(s)
    all_to_all.a2a(s)
    parallel.shared_experts_tp(s)
    parallel.elastic_and_eplb(s)
    rare.elastic_join(s)
    if s.pp_size > 1:
        s.set("pipeline parallelism", "arg_groups/overrides.py:1624", disable_overlap_schedule=True)
    speculative.speculative(s)
    checks.boundary_reduction(s)
    rare.layernorm_sp(s)
    all_to_all.flashinfer_token_budget(s)
    all_to_all.mega_moe_budget(s)
    checks.load_format(s)
    serving.encoder_disaggregation(s)
    serving.tokenizer_batching(s)
    serving.environment(s)
    kv_cache.cache_compatibility(s)
    kv_cache.unified_memory(s)
    serving.late_checks(s)
    model.capability_adjustments(s)
    graphs.finalize_max_context(s)
    all_to_all.late_deepep_v2(s)
    for name, value in FALLBACKS.items():
        if s.values.get(name) is None:
            s.values[name] = value
    s.values["enable_dp_attention"] = s.attn_dp_size > 1  # as /server_info reports it (server_args.py:340)
    final.check_server_args(s)
