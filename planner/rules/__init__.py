"""The rules, one a file, in the order of their codes. ENG001 stands last: it is silent beside another error.

Families: FLG flags, FRM forms of writing, SPC speculation, ATT attention, MOE experts, QNT quantisation, GRF graphs,
COM communication, MEM memory, PAR parallel sizes, SCH scheduling and caches, ENV environment, PDD prefill and decode,
KNW known faults of one model, ENG the engine's own refusals. A code is never used twice.
"""

from __future__ import annotations

from planner.rules.att001_gdn_backend import RULE as ATT001
from planner.rules.att002_draft_inherits_mla import RULE as ATT002
from planner.rules.att003_fa3_on_blackwell import RULE as ATT003
from planner.rules.att004_multimodal_default_fa3 import RULE as ATT004
from planner.rules.att005_page_size_flashinfer_mla import RULE as ATT005
from planner.rules.att006_trtllm_mla_machine import RULE as ATT006
from planner.rules.att007_wide_tree_paged import RULE as ATT007
from planner.rules.att008_trtllm_mha_topk import RULE as ATT008
from planner.rules.att009_eagle_sliding_window import RULE as ATT009
from planner.rules.att010_fp8_kv_mla_sm120 import RULE as ATT010
from planner.rules.att011_mla_backend_without_mla import RULE as ATT011
from planner.rules.att012_page_size_rewritten import RULE as ATT012
from planner.rules.att013_gpt_oss_backend import RULE as ATT013
from planner.rules.att014_fp8_kv_fa3_minimax import RULE as ATT014
from planner.rules.att015_chunk_page_multiple import RULE as ATT015
from planner.rules.att016_deterministic_backend import RULE as ATT016
from planner.rules.att017_dsa_on_sm120 import RULE as ATT017
from planner.rules.att018_graphless_backend import RULE as ATT018
from planner.rules.att019_trtllm_mha_machine import RULE as ATT019
from planner.rules.att020_trtllm_mla_cache_type import RULE as ATT020
from planner.rules.base import Example, Hit, Place, Rule, Status, level_of
from planner.rules.com001_fusion_across_nodes import RULE as COM001
from planner.rules.com002_fusion_machine import RULE as COM002
from planner.rules.com003_fusion_default_sm120 import RULE as COM003
from planner.rules.com004_fusion_with_attention_dp import RULE as COM004
from planner.rules.com005_fusion_default_across_nodes import RULE as COM005
from planner.rules.com006_nvls_without_switch import RULE as COM006
from planner.rules.com007_container_shm import RULE as COM007
from planner.rules.com008_ib_probe_on_pcie import RULE as COM008
from planner.rules.com009_custom_allreduce_on_pcie import RULE as COM009
from planner.rules.com010_tp_on_pcie import RULE as COM010
from planner.rules.context import RuleContext
from planner.rules.eng001_engine_refuses import RULE as ENG001
from planner.rules.env001_spec_v2_gone import RULE as ENV001
from planner.rules.env002_old_env_prefix import RULE as ENV002
from planner.rules.env003_nvls_env_overridden import RULE as ENV003
from planner.rules.env004_nvls_left_off import RULE as ENV004
from planner.rules.env005_ci_variable import RULE as ENV005
from planner.rules.flg001_unknown_flag import RULE as FLG001
from planner.rules.flg002_underscore_flag import RULE as FLG002
from planner.rules.flg003_vllm_flag import RULE as FLG003
from planner.rules.flg004_removed_flag import RULE as FLG004
from planner.rules.flg005_ambiguous_prefix import RULE as FLG005
from planner.rules.flg006_bad_choice import RULE as FLG006
from planner.rules.flg007_bad_type import RULE as FLG007
from planner.rules.flg008_missing_value import RULE as FLG008
from planner.rules.flg009_abbreviated_flag import RULE as FLG009
from planner.rules.flg010_deprecated_flag import RULE as FLG010
from planner.rules.flg011_given_twice import RULE as FLG011
from planner.rules.flg012_stray_word import RULE as FLG012
from planner.rules.flg013_diffusion_launch import RULE as FLG013
from planner.rules.flg014_no_model import RULE as FLG014
from planner.rules.frm001_comment_after_backslash import RULE as FRM001
from planner.rules.frm002_missing_backslash import RULE as FRM002
from planner.rules.frm003_unquoted_json import RULE as FRM003
from planner.rules.frm004_broken_json import RULE as FRM004
from planner.rules.frm005_env_not_exported import RULE as FRM005
from planner.rules.frm006_typographic_dash import RULE as FRM006
from planner.rules.frm007_moving_image import RULE as FRM007
from planner.rules.grf001_prefill_graph_fp4_eagle import RULE as GRF001
from planner.rules.grf002_fusion_fp4_eagle import RULE as GRF002
from planner.rules.grf003_glm52_eagle_capture_0515 import RULE as GRF003
from planner.rules.grf004_graphs_512_rtx_pro import RULE as GRF004
from planner.rules.grf005_more_requests_than_graphs import RULE as GRF005
from planner.rules.grf006_graphs_never_used import RULE as GRF006
from planner.rules.grf007_graphs_off import RULE as GRF007
from planner.rules.grf008_graph_order_trap import RULE as GRF008
from planner.rules.grf009_compile_without_padding import RULE as GRF009
from planner.rules.grf010_full_prefill_graph import RULE as GRF010
from planner.rules.knw001_ampere_verify_hang import RULE as KNW001
from planner.rules.knw002_sm103_takes_sm100_kernels import RULE as KNW002
from planner.rules.knw003_flaky_start import RULE as KNW003
from planner.rules.knw004_kimi_k2_garbage_b200 import RULE as KNW004
from planner.rules.knw005_block_drafter_ima import RULE as KNW005
from planner.rules.mem001_fraction_below_weights import RULE as MEM001
from planner.rules.mem002_no_fraction_fits import RULE as MEM002
from planner.rules.mem003_hybrid_state import RULE as MEM003
from planner.rules.mem004_prefill_headroom import RULE as MEM004
from planner.rules.mem005_context_beyond_pool import RULE as MEM005
from planner.rules.mem006_draft_not_budgeted import RULE as MEM006
from planner.rules.mem007_fraction_too_high import RULE as MEM007
from planner.rules.moe001_flashinfer_cutlass_moe import RULE as MOE001
from planner.rules.moe002_mxfp4_moe_machine import RULE as MOE002
from planner.rules.moe003_trtllm_moe_machine import RULE as MOE003
from planner.rules.moe004_deep_gemm_sm120 import RULE as MOE004
from planner.rules.moe005_nvfp4_moe_sm120 import RULE as MOE005
from planner.rules.moe006_fp4_cutlass_race import RULE as MOE006
from planner.rules.moe007_deepgemm_capture_0512 import RULE as MOE007
from planner.rules.moe008_sm103_trtllm_draft_capture import RULE as MOE008
from planner.rules.moe009_trtllm_moe_long_context import RULE as MOE009
from planner.rules.moe010_mxfp4_moe_deepep import RULE as MOE010
from planner.rules.moe011_cutlass_moe_ep import RULE as MOE011
from planner.rules.moe012_trtllm_moe_quantization import RULE as MOE012
from planner.rules.moe013_deepep_dispatch_cap import RULE as MOE013
from planner.rules.moe014_deepep_on_pcie import RULE as MOE014
from planner.rules.moe015_deepep_normal_graphs import RULE as MOE015
from planner.rules.moe016_moe_flags_on_dense import RULE as MOE016
from planner.rules.moe017_deepep_pipeline_capture import RULE as MOE017
from planner.rules.moe018_deep_gemm_blocks_sm120 import RULE as MOE018
from planner.rules.par001_more_ranks_than_gpus import RULE as PAR001
from planner.rules.par002_heads_over_ranks import RULE as PAR002
from planner.rules.par003_expert_parallel_division import RULE as PAR003
from planner.rules.par004_attention_dp_division import RULE as PAR004
from planner.rules.par005_block_scales_over_ranks import RULE as PAR005
from planner.rules.par006_nodes_division import RULE as PAR006
from planner.rules.par007_no_rendezvous import RULE as PAR007
from planner.rules.par008_idle_gpus import RULE as PAR008
from planner.rules.par009_visible_devices import RULE as PAR009
from planner.rules.par010_ep_overridden import RULE as PAR010
from planner.rules.par011_dsv4_attention_dp import RULE as PAR011
from planner.rules.par012_dense_tp import RULE as PAR012
from planner.rules.par013_speculation_with_pp import RULE as PAR013
from planner.rules.par014_gdn_block_scales import RULE as PAR014
from planner.rules.pdd001_speculation_on_one_role import RULE as PDD001
from planner.rules.pdd002_cache_on_one_role import RULE as PDD002
from planner.rules.pdd003_model_on_one_role import RULE as PDD003
from planner.rules.qnt001_quantization_against_checkpoint import RULE as QNT001
from planner.rules.qnt002_fp4_machine import RULE as QNT002
from planner.rules.qnt003_fp8_machine import RULE as QNT003
from planner.rules.sch001_default_48_requests import RULE as SCH001
from planner.rules.sch002_fewer_requests_than_ranks import RULE as SCH002
from planner.rules.sch003_mixed_chunk_off import RULE as SCH003
from planner.rules.sch004_overlap_off import RULE as SCH004
from planner.rules.sch005_hicache_dsa import RULE as SCH005
from planner.rules.sch006_hicache_speculation import RULE as SCH006
from planner.rules.sch007_dflash_prefix_cache import RULE as SCH007
from planner.rules.sch008_context_beyond_model import RULE as SCH008
from planner.rules.sch009_cache_off_and_on import RULE as SCH009
from planner.rules.sch010_draft_kv_dtype import RULE as SCH010
from planner.rules.sch011_hicache_layout_changed import RULE as SCH011
from planner.rules.sch012_two_batch_overlap_alone import RULE as SCH012
from planner.rules.spc001_numbers_without_algorithm import RULE as SPC001
from planner.rules.spc002_incomplete_triple import RULE as SPC002
from planner.rules.spc003_chain_draft_tokens import RULE as SPC003
from planner.rules.spc004_no_draft import RULE as SPC004
from planner.rules.spc005_no_mtp_layers import RULE as SPC005
from planner.rules.spc006_draft_kind_mismatch import RULE as SPC006
from planner.rules.spc007_block_size_conflict import RULE as SPC007
from planner.rules.spc008_chain_only_algorithm import RULE as SPC008
from planner.rules.spc009_target_as_draft import RULE as SPC009
from planner.rules.spc010_beyond_block import RULE as SPC010
from planner.rules.spc011_tree_not_released import RULE as SPC011
from planner.rules.spc012_unknown_algorithm import RULE as SPC012
from planner.rules.spc013_nextn_spelling import RULE as SPC013
from planner.rules.spc014_needless_draft_path import RULE as SPC014
from planner.rules.spc015_draft_with_attention_dp import RULE as SPC015
from planner.rules.spc016_rejection_sampling import RULE as SPC016
from planner.rules.spc017_eagle_dp_attention_split import RULE as SPC017
from planner.rules.spc018_mtp_dp_attention_old import RULE as SPC018
from planner.rules.spc019_draft_loads_target_twice import RULE as SPC019
from planner.rules.spc020_too_many_draft_tokens import RULE as SPC020
from planner.rules.spc021_draft_window import RULE as SPC021
from planner.rules.spc022_tree_backend import RULE as SPC022
from planner.rules.spc023_ngram_flashinfer_graphs import RULE as SPC023
from planner.rules.spc024_adaptive_switched_off import RULE as SPC024
from planner.rules.spc025_draft_copies_target_quantization import RULE as SPC025
from planner.rules.spc026_low_value_at_concurrency import RULE as SPC026

__all__ = ["RULES", "Example", "Hit", "Place", "Rule", "RuleContext", "Status", "level_of", "rule_of"]

RULES: tuple[Rule, ...] = (
    ATT001,
    ATT002,
    ATT003,
    ATT004,
    ATT005,
    ATT006,
    ATT007,
    ATT008,
    ATT009,
    ATT010,
    ATT011,
    ATT012,
    ATT013,
    ATT014,
    ATT015,
    ATT016,
    ATT017,
    ATT018,
    ATT019,
    ATT020,
    COM001,
    COM002,
    COM003,
    COM004,
    COM005,
    COM006,
    COM007,
    COM008,
    COM009,
    COM010,
    ENV001,
    ENV002,
    ENV003,
    ENV004,
    ENV005,
    FLG001,
    FLG002,
    FLG003,
    FLG004,
    FLG005,
    FLG006,
    FLG007,
    FLG008,
    FLG009,
    FLG010,
    FLG011,
    FLG012,
    FLG013,
    FLG014,
    FRM001,
    FRM002,
    FRM003,
    FRM004,
    FRM005,
    FRM006,
    FRM007,
    GRF001,
    GRF002,
    GRF003,
    GRF004,
    GRF005,
    GRF006,
    GRF007,
    GRF008,
    GRF009,
    GRF010,
    KNW001,
    KNW002,
    KNW003,
    KNW004,
    KNW005,
    MEM001,
    MEM002,
    MEM003,
    MEM004,
    MEM005,
    MEM006,
    MEM007,
    MOE001,
    MOE002,
    MOE003,
    MOE004,
    MOE005,
    MOE006,
    MOE007,
    MOE008,
    MOE009,
    MOE010,
    MOE011,
    MOE012,
    MOE013,
    MOE014,
    MOE015,
    MOE016,
    MOE017,
    MOE018,
    PAR001,
    PAR002,
    PAR003,
    PAR004,
    PAR005,
    PAR006,
    PAR007,
    PAR008,
    PAR009,
    PAR010,
    PAR011,
    PAR012,
    PAR013,
    PAR014,
    PDD001,
    PDD002,
    PDD003,
    QNT001,
    QNT002,
    QNT003,
    SCH001,
    SCH002,
    SCH003,
    SCH004,
    SCH005,
    SCH006,
    SCH007,
    SCH008,
    SCH009,
    SCH010,
    SCH011,
    SCH012,
    SPC001,
    SPC002,
    SPC003,
    SPC004,
    SPC005,
    SPC006,
    SPC007,
    SPC008,
    SPC009,
    SPC010,
    SPC011,
    SPC012,
    SPC013,
    SPC014,
    SPC015,
    SPC016,
    SPC017,
    SPC018,
    SPC019,
    SPC020,
    SPC021,
    SPC022,
    SPC023,
    SPC024,
    SPC025,
    SPC026,
    ENG001,
)


def rule_of(name: str) -> Rule | None:
    """The rule of a code or slug, in any case; None when there is none."""
    wanted = name.strip().lower()
    return next((rule for rule in RULES if wanted in (rule.code.lower(), rule.slug)), None)
