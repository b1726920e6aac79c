"""The rules in the order of their codes, and for each what a launch must have before it can say anything.

A review imports the module of a rule only when the launch has that, because a hundred and forty modules are a sixth of
the time that a review of one file takes. The words of a row all have to hold; ``a|b`` holds when one of them does:

- ``name`` the argument is given, ``$NAME`` the variable is set in the file
- ``@name`` the property of :class:`planner.rules.context.RuleContext` is not empty, ``!name`` it is
- ``=NAME`` the speculative algorithm, ``^Name`` the architecture of the model, ``?KIND`` a fault of a flag

A row may ask for less than its rule does, never for more: tests/rules/test_index.py holds every rule against it.
ENG001 stands last: it is silent beside another error.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache

from planner.rules.base import Rule
from planner.rules.context import RuleContext
from planner.rules.parts import FaultKind

__all__ = ["INDEX", "all_rules", "can_speak", "load_rule", "rules_for"]

INDEX: tuple[tuple[str, str], ...] = (
    ("att001_gdn_backend", "@facts @asked_attention"),
    ("att002_draft_inherits_mla", "speculative_draft_model_path =EAGLE3|=STANDALONE"),
    (
        "att003_fa3_on_blackwell",
        "@sm100|@sm120 @asked_attention|speculative_draft_attention_backend|mm_attention_backend",
    ),
    ("att004_multimodal_default_fa3", "@facts @sm100|@sm120"),
    ("att005_page_size_flashinfer_mla", "page_size @is_mla"),
    ("att006_trtllm_mla_machine", "@hardware !sm100"),
    ("att007_wide_tree_paged", "speculative_eagle_topk @eagle_family"),
    ("att008_trtllm_mha_topk", "speculative_eagle_topk @eagle_family @asked_attention"),
    ("att009_eagle_sliding_window", "@eagle_family @facts"),
    ("att010_fp8_kv_mla_sm120", "kv_cache_dtype @sm120"),
    ("att011_mla_backend_without_mla", "@facts @asked_attention"),
    ("att012_page_size_rewritten", "page_size"),
    ("att013_gpt_oss_backend", "^GptOssForCausalLM"),
    ("att014_fp8_kv_fa3_minimax", "kv_cache_dtype ^MiniMaxM2ForCausalLM"),
    ("att015_chunk_page_multiple", "chunked_prefill_size"),
    ("att016_deterministic_backend", "enable_deterministic_inference"),
    ("att017_dsa_on_sm120", "@sm120 @facts"),
    ("att018_graphless_backend", "@asked_attention"),
    ("att019_trtllm_mha_machine", "@hardware !sm100"),
    ("att020_trtllm_mla_cache_type", "kv_cache_dtype"),
    ("att021_triton_mla_offset", "@is_mla @hardware"),
    ("com001_fusion_across_nodes", "enable_flashinfer_allreduce_fusion @multi_node"),
    ("com002_fusion_machine", "@hardware !sm100"),
    ("com003_fusion_default_sm120", "@sm120"),
    ("com004_fusion_with_attention_dp", "enable_flashinfer_allreduce_fusion enable_dp_attention"),
    ("com005_fusion_default_across_nodes", "@multi_node"),
    ("com006_nvls_without_switch", "@hardware enable_nccl_nvls|$NCCL_NVLS_ENABLE"),
    ("com007_container_shm", "@container"),
    ("com008_ib_probe_on_pcie", "@pcie"),
    ("com009_custom_allreduce_on_pcie", "@pcie"),
    ("com010_tp_on_pcie", "@pcie"),
    ("env001_spec_v2_gone", "$SGLANG_ENABLE_SPEC_V2"),
    ("env002_old_env_prefix", "@env"),
    ("env003_nvls_env_overridden", "enable_nccl_nvls|enable_symm_mem"),
    ("env004_nvls_left_off", "@hardware @speculates"),
    ("env005_ci_variable", "$SGLANG_IS_IN_CI|$SGLANG_IS_IN_CI_AMD"),
    ("flg001_unknown_flag", "?UNKNOWN"),
    ("flg002_underscore_flag", "?UNKNOWN"),
    ("flg003_vllm_flag", "?UNKNOWN"),
    ("flg004_removed_flag", "@faults"),
    ("flg005_ambiguous_prefix", "?AMBIGUOUS"),
    ("flg006_bad_choice", "?BAD_CHOICE"),
    ("flg007_bad_type", "?BAD_TYPE"),
    ("flg008_missing_value", "?MISSING_VALUE"),
    ("flg009_abbreviated_flag", "?ABBREVIATED"),
    ("flg010_deprecated_flag", "?DEPRECATED"),
    ("flg011_given_twice", ""),
    ("flg012_stray_word", "@faults"),
    ("flg013_diffusion_launch", "@diffusion"),
    ("flg014_no_model", ""),
    ("frm001_comment_after_backslash", "@writing"),
    ("frm002_missing_backslash", "@writing"),
    ("frm003_unquoted_json", "@writing"),
    ("frm004_broken_json", ""),
    ("frm005_env_not_exported", "@env"),
    ("frm006_typographic_dash", "?POSITIONAL|?UNKNOWN"),
    ("frm007_moving_image", "@container"),
    ("grf001_prefill_graph_fp4_eagle", "@eagle_family cuda_graph_backend_prefill"),
    ("grf002_fusion_fp4_eagle", "@eagle_family @sm100"),
    ("grf003_glm52_eagle_capture_0515", "^GlmMoeDsaForCausalLM"),
    ("grf004_graphs_512_rtx_pro", "@sm120"),
    ("grf005_more_requests_than_graphs", ""),
    ("grf006_graphs_never_used", "max_running_requests"),
    ("grf007_graphs_off", "disable_cuda_graph @hardware"),
    ("grf008_graph_order_trap", "@speculates"),
    ("grf009_compile_without_padding", "enable_torch_compile"),
    ("grf010_full_prefill_graph", "@sm120 cuda_graph_backend_prefill"),
    ("knw001_ampere_verify_hang", "@eagle_family @hardware !sm100"),
    ("knw002_sm103_takes_sm100_kernels", "^KimiK3ForConditionalGeneration"),
    ("knw003_flaky_start", "@eagle_family enable_hierarchical_cache"),
    ("knw004_kimi_k2_garbage_b200", "@sm100 @facts"),
    ("knw005_block_drafter_ima", "=DFLASH"),
    ("mem001_fraction_below_weights", "mem_fraction_static @hardware"),
    ("mem002_no_fraction_fits", "@hardware"),
    ("mem003_hybrid_state", "mem_fraction_static @hardware"),
    ("mem004_prefill_headroom", "mem_fraction_static chunked_prefill_size @hardware"),
    ("mem005_context_beyond_pool", "@hardware @model"),
    ("mem006_draft_not_budgeted", "mem_fraction_static"),
    ("mem007_fraction_too_high", "mem_fraction_static"),
    ("moe001_flashinfer_cutlass_moe", "moe_runner_backend|speculative_moe_runner_backend"),
    ("moe002_mxfp4_moe_machine", "moe_runner_backend"),
    ("moe003_trtllm_moe_machine", "@hardware !sm100"),
    ("moe004_deep_gemm_sm120", "@sm120"),
    ("moe005_nvfp4_moe_sm120", "@sm120"),
    ("moe006_fp4_cutlass_race", "@sm120"),
    ("moe007_deepgemm_capture_0512", "@sm100"),
    ("moe008_sm103_trtllm_draft_capture", "@eagle_family @hardware"),
    ("moe009_trtllm_moe_long_context", "@sm100 ^GlmMoeDsaForCausalLM"),
    ("moe010_mxfp4_moe_deepep", "moe_runner_backend moe_a2a_backend"),
    ("moe011_cutlass_moe_ep", ""),
    ("moe012_trtllm_moe_quantization", "moe_runner_backend"),
    ("moe013_deepep_dispatch_cap", "moe_a2a_backend"),
    ("moe014_deepep_on_pcie", "moe_a2a_backend @pcie"),
    ("moe015_deepep_normal_graphs", "moe_a2a_backend deepep_mode"),
    ("moe016_moe_flags_on_dense", "@facts"),
    ("moe017_deepep_pipeline_capture", "moe_a2a_backend"),
    ("moe018_deep_gemm_blocks_sm120", "@sm120"),
    ("par001_more_ranks_than_gpus", "@gpus"),
    ("par002_heads_over_ranks", "@facts"),
    ("par003_expert_parallel_division", "ep_size"),
    ("par004_attention_dp_division", "enable_dp_attention"),
    ("par005_block_scales_over_ranks", "@facts"),
    ("par006_nodes_division", "nnodes"),
    ("par007_no_rendezvous", "nnodes"),
    ("par008_idle_gpus", "@container|$CUDA_VISIBLE_DEVICES"),
    ("par009_visible_devices", "$CUDA_VISIBLE_DEVICES"),
    ("par010_ep_overridden", "moe_a2a_backend ep_size"),
    ("par011_dsv4_attention_dp", "enable_dp_attention ^DeepseekV4ForCausalLM"),
    ("par012_dense_tp", "moe_dense_tp_size"),
    ("par013_speculation_with_pp", "pp_size"),
    ("par014_gdn_block_scales", "@facts"),
    ("pdd001_speculation_on_one_role", "disaggregation_mode|@role|!alone"),
    ("pdd002_cache_on_one_role", "disaggregation_mode|@role|!alone"),
    ("pdd003_model_on_one_role", "disaggregation_mode|@role|!alone"),
    ("qnt001_quantization_against_checkpoint", "quantization"),
    ("qnt002_fp4_machine", "@hardware !sm100"),
    ("qnt003_fp8_machine", "@hardware !sm100"),
    ("sch001_default_48_requests", "@speculates"),
    ("sch002_fewer_requests_than_ranks", "max_running_requests"),
    ("sch003_mixed_chunk_off", "enable_mixed_chunk"),
    ("sch004_overlap_off", "pp_size|speculative_algorithm"),
    ("sch005_hicache_dsa", "enable_hierarchical_cache"),
    ("sch006_hicache_speculation", "enable_hierarchical_cache"),
    ("sch007_dflash_prefix_cache", "=DFLASH"),
    ("sch008_context_beyond_model", "context_length"),
    ("sch009_cache_off_and_on", "enable_hierarchical_cache disable_radix_cache"),
    ("sch010_draft_kv_dtype", "=DFLASH kv_cache_dtype"),
    ("sch011_hicache_layout_changed", "enable_hierarchical_cache"),
    ("sch012_two_batch_overlap_alone", "enable_two_batch_overlap"),
    ("spc001_numbers_without_algorithm", "!speculates"),
    ("spc002_incomplete_triple", "@speculates"),
    ("spc003_chain_draft_tokens", "speculative_eagle_topk"),
    ("spc004_no_draft", "=EAGLE3|=STANDALONE|=DFLASH|=DDTREE"),
    ("spc005_no_mtp_layers", "=EAGLE|=NEXTN"),
    ("spc006_draft_kind_mismatch", "speculative_draft_model_path"),
    ("spc007_block_size_conflict", "=DFLASH"),
    ("spc008_chain_only_algorithm", "=DFLASH"),
    ("spc009_target_as_draft", "speculative_draft_model_path"),
    ("spc010_beyond_block", "=DFLASH @drafter"),
    ("spc011_tree_not_released", "=DDTREE"),
    ("spc012_unknown_algorithm", "@speculates"),
    ("spc013_nextn_spelling", "=NEXTN"),
    ("spc014_needless_draft_path", "speculative_draft_model_path"),
    ("spc015_draft_with_attention_dp", "enable_dp_attention @speculates"),
    ("spc016_rejection_sampling", "speculative_use_rejection_sampling"),
    ("spc017_eagle_dp_attention_split", "@eagle_family enable_dp_attention"),
    ("spc018_mtp_dp_attention_old", "enable_dp_attention @speculates"),
    ("spc019_draft_loads_target_twice", "@speculates ^GlmMoeDsaForCausalLM"),
    ("spc020_too_many_draft_tokens", "@eagle_family speculative_eagle_topk"),
    ("spc021_draft_window", "=DFLASH speculative_draft_window_size"),
    ("spc022_tree_backend", "=DDTREE"),
    ("spc023_ngram_flashinfer_graphs", "=NGRAM"),
    ("spc024_adaptive_switched_off", "speculative_adaptive"),
    ("spc025_draft_copies_target_quantization", "speculative_draft_model_path quantization"),
    ("spc026_low_value_at_concurrency", "speculative_eagle_topk"),
    ("spc027_fewer_draft_tokens_than_steps", "speculative_eagle_topk"),
    ("eng001_engine_refuses", ""),
)
"""Module, and what a launch must have; empty: the rule looks at every launch."""


def load_rule(module: str) -> Rule:
    """The rule of a module of this package."""
    rule: Rule = importlib.import_module(f"planner.rules.{module}").RULE
    return rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule."""
    return tuple(load_rule(module) for module, _ in INDEX)


def rules_for(context: RuleContext) -> Iterator[Rule]:
    """The rules that can say anything about a launch."""
    return (load_rule(module) for module, needs in INDEX if can_speak(needs, context))


def can_speak(needs: str, context: RuleContext) -> bool:
    """Whether a launch has what a row of the index asks for."""
    return all(any(_has(word, context) for word in words.split("|")) for words in needs.split())


def _has(word: str, context: RuleContext) -> bool:
    kind, name = word[0], word[1:]
    if kind == "@":
        return bool(getattr(context, name))
    if kind == "!":
        return not getattr(context, name)
    if kind == "$":
        return name in context.env
    if kind == "=":
        return context.algorithm == name
    if kind == "^":
        return context.architecture == name
    if kind == "?":
        return any(fault.kind is FaultKind[name] for fault in context.faults)
    return context.given(word)
