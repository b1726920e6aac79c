"""The rules of 0.5.12.post1 in the order of ``__post_init__`` (server_args.py:1110), then ``check_server_args``."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_12 import attention, final, memory, model, rest, speculative
from planner.engine.v0_5_23 import checks

__all__ = ["run"]

_COMPATIBLE = {
    "modelopt_fp8": ("modelopt",),
    "modelopt_fp4": ("modelopt",),
    "modelopt_mixed": ("modelopt",),
    "petit_nvfp4": ("modelopt",),
    "w8a8_int8": ("compressed-tensors", "compressed_tensors"),
    "w8a8_fp8": ("compressed-tensors", "compressed_tensors"),
}


def run(s: State) -> None:
    """Resolves in place.

    Raises:
        EngineRefusal: where the engine raises.
    """
    rest.load_balance(s)
    rest.ssl(s)
    rest.pd_disaggregation(s)
    rest.prefill_only(s)
    rest.deprecated(s)
    rest.missing_defaults(s)
    checks.context_length(s)
    checks.quantization(s, compatible=_COMPATIBLE)
    memory.piecewise_graphs(s)
    memory.gpu_memory_settings(s)
    if s.enable_deterministic_inference:
        s.set("deterministic inference", "server_args.py:1160", enforce_disable_flashinfer_allreduce_fusion=True)
    model.model_specific_adjustments(s)
    if s.sampling_backend is None:
        s.set("default with FlashInfer", "server_args.py:2520", sampling_backend="flashinfer")
    attention.deterministic(s)
    attention.backend_compatibility(s)
    plain = s.linear_attn_decode_backend is None and s.speculative_algorithm is None
    if plain and s.platform.sm100 and s.mamba_ssm_dtype == "bfloat16":
        s.set("bfloat16 state on sm_100", "server_args.py:2940", linear_attn_decode_backend="flashinfer")
    attention.fp4_compatibility(s)
    if s.page_size is None:
        s.set("default", "server_args.py:2890", page_size=1)
    if s.grammar_backend is None:
        s.set("default", "server_args.py:2910", grammar_backend="xgrammar")
    attention.multi_item_scoring(s)
    rest.prefill_only_backend(s)
    attention.hicache(s)
    rest.data_parallelism(s)
    rest.context_parallelism(s)
    rest.moe_kernel(s)
    rest.a2a(s)
    rest.experts(s)
    if s.pp_size > 1:
        s.set("pipeline parallelism", "server_args.py:3290", disable_overlap_schedule=True)
    speculative.speculative(s)
    if s.custom_weight_loader is None:
        s.set("default", "server_args.py:3980", custom_weight_loader=[])
    rest.encoder_disaggregation(s)
    rest.tokenizer_batching(s)
    rest.cache_compatibility(s)
    rest.debug_dumps(s)
    _common_names(s)
    final.check_server_args(s)


def _common_names(s: State) -> None:
    """The names under which every version's graphs are reported."""
    s.values["cuda_graph_backend_decode"] = "disabled" if s.disable_cuda_graph else "full"
    s.values["cuda_graph_max_bs_decode"] = s.cuda_graph_max_bs
    s.values["cuda_graph_bs_decode"] = s.cuda_graph_bs
    s.values["attn_dp_size"] = s.dp_size if s.enable_dp_attention else 1
