"""Parallelism: attention DP, context parallelism, expert parallelism (parallel_hook.py)."""

from __future__ import annotations

from typing import Any

from planner.engine.state import State
from planner.engine.v0_5_23.graphs import compatibility, prefill_batch_sizes
from planner.engine.v0_5_23.view import attn_dp_enabled

__all__ = [
    "context_parallelism",
    "data_parallelism",
    "decode_context_parallelism",
    "deprecated_dp_attention",
    "elastic_and_eplb",
    "shared_experts_tp",
]

_HOOK = "arg_groups/parallel_hook.py"


def deprecated_dp_attention(s: State) -> None:
    if not s.enable_dp_attention:
        return
    where = f"{_HOOK}:39"
    if s.attn_dp_size == 1:
        s.set("--enable-dp-attention means this", where, attn_dp_size=s.dp_size, dp_size=1)
    s.set("deprecated: attn_dp_size decides", where, enable_dp_attention=False)


def decode_context_parallelism(s: State) -> None:
    where = f"{_HOOK}:240"
    if s.dcp_comm_backend is None:
        backend = "ag_rs"
        if s.dcp_size > 1:
            tp_per_node = s.tp_size // max(s.nnodes // s.pp_size, 1)
            backend = "fi_a2a" if s.platform.sm100 and tp_per_node % s.dcp_size == 0 else "a2a"
        s.set("default", "arg_groups/overrides.py:1374", dcp_comm_backend=backend)
    if s.dcp_size < 1:
        s.value_error(
            "Decode context parallel size (--dcp-size / --decode-context-parallel-size) must be >= 1, but got "
            f"dcp_size={s.dcp_size}.",
            where,
        )
    if s.dcp_size > 1 and s.enable_prefill_cp:
        s.value_error("--dcp-size > 1 does not support --enable-prefill-cp.", where)
    if s.dcp_comm_backend in ("a2a", "fi_a2a") and s.dcp_size <= 1:
        s.value_error(
            f"--dcp-comm-backend {s.dcp_comm_backend} only affects the decode context-parallel attention reduction "
            f"and therefore requires --dcp-size / --decode-context-parallel-size > 1, but got dcp_size={s.dcp_size}.",
            where,
        )
    if s.dcp_replicate_q_proj:
        if s.dcp_size <= 1:
            s.value_error("--dcp-replicate-q-proj requires --dcp-size > 1.", where)
        if s.dcp_comm_backend not in ("a2a", "fi_a2a"):
            s.value_error(
                "--dcp-replicate-q-proj only applies to the a2a/fi_a2a DCP communication backend (it removes the "
                f"head-dim Q all-gather); got --dcp-comm-backend={s.dcp_comm_backend}.",
                where,
            )


def data_parallelism(s: State) -> None:
    where = f"{_HOOK}:276"
    if s.attn_dp_size < 1:
        s.value_error(f"--attn-dp-size must be positive (got {s.attn_dp_size}).", where)
    if s.attn_dp_size > 1 and s.dp_size > 1:
        s.value_error(
            f"--dp-size {s.dp_size} with --attn-dp-size {s.attn_dp_size}: data-parallel replicas combined with "
            "attention data parallelism are not supported.",
            where,
        )
    if s.dp_size * s.attn_dp_size == 1:
        s.set("no data parallelism", "arg_groups/overrides.py:1367", enable_dp_lm_head=False)
    if attn_dp_enabled(s):
        s.set("attention DP", where, schedule_conservativeness=s.schedule_conservativeness * 0.3)
        s.require(s.tp_size % s.attn_dp_size == 0, "", where)
        s.set("divided by the attention-DP size", where, chunked_prefill_size=s.chunked_prefill_size // s.attn_dp_size)
        prefill = s.graph("prefill")
        if (
            prefill["backend"] != "disabled"
            and prefill["max_bs"] is not None
            and prefill["max_bs"] > s.chunked_prefill_size
            and ("prefill", "max_bs") not in s.locked
        ):
            changes: dict[str, Any] = {"max_bs": s.chunked_prefill_size}
            if ("prefill", "bs") not in s.locked:
                changes["bs"] = prefill_batch_sizes(s.chunked_prefill_size)
            s.set_graph("no more than the chunk of one rank", where, "prefill", **changes)
    if s.enable_tp_lm_head_all_to_all is None:
        enable = (
            s.disaggregation_mode == "decode"
            and s.attn_dp_size > 1
            and s.tp_size == s.attn_dp_size
            and s.attn_cp_size == 1
            and not s.enable_dp_lm_head
        )
        s.set("default", "arg_groups/overrides.py:1400", enable_tp_lm_head_all_to_all=enable)
    _lm_head(s)


def _lm_head(s: State) -> None:
    where = "arg_groups/overrides.py:1422"
    if s.enable_dp_lm_head:
        s.require(attn_dp_enabled(s), "--enable-dp-lm-head requires attention DP (--attn-dp-size).", where)
    if s.enable_tp_lm_head_all_to_all:
        s.require(attn_dp_enabled(s), "--enable-tp-lm-head-all-to-all requires attention DP (--attn-dp-size).", where)
        s.require(
            not s.enable_dp_lm_head,
            "--enable-tp-lm-head-all-to-all uses a TP-sharded LM head and is incompatible with --enable-dp-lm-head.",
            where,
        )
        s.require(
            s.tp_size == s.attn_dp_size,
            "--enable-tp-lm-head-all-to-all currently requires tp_size == attn_dp_size, got "
            f"tp_size={s.tp_size}, attn_dp_size={s.attn_dp_size}.",
            where,
        )
        s.require(
            s.attn_cp_size == 1,
            f"--enable-tp-lm-head-all-to-all currently requires attn_cp_size == 1, got {s.attn_cp_size}.",
            where,
        )


def context_parallelism(s: State) -> None:
    where = f"{_HOOK}:94"
    if s.model is not None:
        architecture = s.model.architecture
        if s.enable_prefill_cp and architecture == "DeepseekV32ForCausalLM" and s.cp_strategy == "zigzag":
            s.value_error("DeepSeek V3.2 prefill CP does not support --cp-strategy zigzag; use interleave.", where)
    if s.enable_prefill_cp and s.cp_strategy is None:
        s.value_error("--cp-strategy must be set when --enable-prefill-cp is enabled.", where)
    if s.attn_cp_size > 1:
        s.require(s.tp_size % s.attn_cp_size == 0, "tp_size must be divisible by attn_cp_size", where)
        s.require(
            s.tp_size % (s.attn_dp_size * s.attn_cp_size) == 0,
            "tp_size must be divisible by attn_dp_size * attn_cp_size",
            where,
        )
        s.require(
            not s.enable_aiter_allreduce_fusion,
            "Aiter allreduce fusion is not supported with context parallelism",
            where,
        )
    if s.moe_dp_size > 1:
        s.require(s.tp_size % s.moe_dp_size == 0, "tp_size must be divisible by moe_dp_size", where)
        s.require(
            s.ep_size * s.moe_dp_size <= s.tp_size,
            "ep_size * moe_dp_size must be less than or equal to tp_size",
            where,
        )
        s.require(s.pp_size == 1, "PP is not supported with context parallelism", where)
        if s.ep_size > 1:
            s.require(s.ep_size * s.moe_dp_size == s.tp_size, "ep_size * moe_dp_size must be equal to tp_size", where)
        s.require(
            not s.enable_aiter_allreduce_fusion,
            "Aiter allreduce fusion is not supported with context parallelism",
            where,
        )
    if s.attn_cp_size != s.moe_dp_size:
        s.require(s.moe_dp_size == 1, "attn_cp_size != moe_dp_size is only supported when moe_dp_size == 1", where)
    if s.enable_prefill_cp:
        compatibility(s)


def shared_experts_tp(s: State) -> None:
    if s.shared_experts_tp_size is None:
        return
    where = f"{_HOOK}:203"
    attn_tp = s.tp_size // s.attn_cp_size // s.attn_dp_size
    size = s.shared_experts_tp_size
    if size < 1 or attn_tp % size:
        s.value_error(
            f"--shared-experts-tp-size ({size}) must be a positive divisor of attention TP size ({attn_tp}).", where
        )
    if s.model is not None and s.model.architecture != "KimiK3ForConditionalGeneration":
        s.value_error("--shared-experts-tp-size is only supported for Kimi-K3.", where)


def elastic_and_eplb(s: State) -> None:
    """Expert balancing and elastic expert parallelism."""
    where = f"{_HOOK}:750"
    if s.enable_eplb and s.expert_distribution_recorder_mode is None:
        s.set("EPLB", where, expert_distribution_recorder_mode="stat")
    alone = s.moe_a2a_backend == "none"
    if (s.enable_eplb or s.init_expert_location != "trivial") and s.ep_dispatch_algorithm is None:
        s.set("expert placement", where, ep_dispatch_algorithm="dynamic" if alone else "static")
    if alone and s.ep_dispatch_algorithm in ("static", "lp"):
        s.value_error(
            f"--ep-dispatch-algorithm {s.ep_dispatch_algorithm} picks a different physical replica per rank, which "
            "only holds up when an a2a backend routes each token to a single rank. Use --ep-dispatch-algorithm "
            "dynamic with --moe-a2a-backend none.",
            where,
        )
    if s.enable_eplb:
        s.require(s.ep_size > 1, "", where)
    where = f"{_HOOK}:794"
    if s.expert_balancedness_report_mode != "off" and s.expert_distribution_recorder_mode is None:
        s.set("the report needs it", where, expert_distribution_recorder_mode="stat")
    if s.expert_distribution_recorder_buffer_size is None:
        if s.eplb_rebalance_num_iterations is not None:
            s.set(
                "as many as EPLB iterations",
                where,
                expert_distribution_recorder_buffer_size=s.eplb_rebalance_num_iterations,
            )
        elif s.expert_distribution_recorder_mode is not None:
            s.set("default", where, expert_distribution_recorder_buffer_size=1000)
    where = f"{_HOOK}:519"
    if s.elastic_ep_backend is not None:
        if s.enable_eplb and s.eplb_algorithm == "auto":
            s.set("elastic expert parallelism", where, eplb_algorithm="elasticity_aware")
        s.require(s.pp_size == 1, "PP size should be set to 1 under elastic EP", where)
