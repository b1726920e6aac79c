"""DFLASH, DSPARK and UNO: drafts of a whole block (speculative_hook.py:287-990)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.view import attention_backends, attn_dp_enabled

__all__ = ["DRAFT_BACKENDS", "dflash", "dspark", "fill_running_requests", "uno"]

_HOOK = "arg_groups/speculative_hook.py"
DRAFT_BACKENDS = ("flashinfer", "fa3", "fa4", "triton", "ascend", "trtllm_mha", "intel_xpu")
"""Attention backends of a block drafter (0.5.23 srt/arg_groups/choices.py:103)."""
_DSPARK_KEYS = ("dspark_block_size", "dspark_markov_rank", "dspark_noise_token_id", "dspark_target_layer_ids")


def fill_running_requests(s: State, where: str) -> None:
    """48 requests where nothing was given. The memory rules ran before, so the graphs are not sized for 48."""
    if s.max_running_requests is None:
        s.set(f"default of {s.speculative_algorithm}", where, max_running_requests=48)
        if s.graph("decode")["backend"] != "disabled" and ("decode", "max_bs") not in s.locked:
            s.notes.append(
                f"graphs were sized before the default of 48 requests: they reach {s.graph('decode')['max_bs']}; "
                "give --max-running-requests and --cuda-graph-max-bs-decode"
            )


def _chain(s: State, where: str) -> None:
    """One step, one candidate: the block is a chain."""
    s.set(f"{s.speculative_algorithm} drafts a block in one step", where, speculative_num_steps=1)
    s.set(f"{s.speculative_algorithm} is a chain", where, speculative_eagle_topk=1)


def dflash(s: State) -> None:
    where = f"{_HOOK}:287"
    if attn_dp_enabled(s):
        if not s.enable_dp_lm_head:
            s.value_error("DFLASH with dp attention requires --enable-dp-lm-head.", f"{_HOOK}:303")
        if s.attn_cp_size != 1:
            s.value_error("DFLASH with dp attention does not support context parallel.", f"{_HOOK}:303")
    if s.pp_size != 1:
        s.value_error("Currently DFLASH speculative decoding only supports pp_size == 1.", f"{_HOOK}:321")
    if s.speculative_draft_model_path is None:
        s.value_error("DFLASH speculative decoding requires setting --speculative-draft-model-path.", f"{_HOOK}:326")
    _chain(s, f"{_HOOK}:342")
    block = s.speculative_dflash_block_size
    if block is not None:
        if block <= 0:
            s.value_error(f"DFLASH requires --speculative-dflash-block-size to be positive, got {block}.", where)
        if s.speculative_num_draft_tokens is not None and s.speculative_num_draft_tokens != block:
            s.value_error(
                "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ. For "
                f"DFLASH they must match. speculative_num_draft_tokens={s.speculative_num_draft_tokens}, "
                f"speculative_dflash_block_size={block}.",
                f"{_HOOK}:379",
            )
        s.set("the block size", f"{_HOOK}:379", speculative_num_draft_tokens=block)
    if s.speculative_num_draft_tokens is None:
        known = s.draft.block_size if s.draft is not None else None
        because = "block size of the draft model" if known else "no block size in the draft model's config"
        s.set(because, f"{_HOOK}:388", speculative_num_draft_tokens=known or 16)
    window, tokens = s.speculative_draft_window_size, s.speculative_num_draft_tokens
    if window is not None and window < tokens:
        s.value_error(
            "--speculative-draft-window-size must be >= --speculative-num-draft-tokens (block_size). "
            f"window_size={window}, block_size={tokens}.",
            f"{_HOOK}:429",
        )
    _draft_backend(s)
    fill_running_requests(s, f"{_HOOK}:442")


def _draft_backend(s: State) -> None:
    where = f"{_HOOK}:886"
    backend = s.speculative_draft_attention_backend or attention_backends(s)[0]
    because = "the target's prefill backend"
    fallback = "triton" if s.platform.hip else "flashinfer"
    if backend is None:
        backend, because = fallback, "default"
    elif backend not in DRAFT_BACKENDS:
        backend, because = fallback, f"a block drafter cannot run on {backend}"
    elif backend == "trtllm_mha":
        config = s.draft.config if s.draft is not None else {}
        text = config.get("text_config") or config
        layers = text.get("layer_types", config.get("layer_types"))
        sliding = bool(layers) and len(layers) == text.get("num_hidden_layers") and set(layers) == {"sliding_attention"}
        if not (sliding or text.get("is_causal") is True):
            backend = "fa4" if s.platform.sm100 else fallback
            because = "trtllm_mha needs a draft whose layers all slide or are causal"
    s.set(because, where, speculative_draft_attention_backend=backend)


def dspark(s: State) -> None:
    where = f"{_HOOK}:666"
    coordinated = s.flag("SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION")
    static = s.env.get("SGLANG_RAGGED_VERIFY_MODE", "static") == "static"
    if s.attn_dp_size > 1:
        if not s.enable_dp_lm_head:
            s.value_error("DSpark with dp attention requires --enable-dp-lm-head.", where)
        if s.moe_a2a_backend not in ("none", "megamoe", "mori"):
            s.value_error(
                "DSpark with dp attention supports moe_a2a_backend 'none' (built-in TP MoE), 'megamoe', or 'mori', "
                f"got {s.moe_a2a_backend!r}.",
                where,
            )
        if (s.moe_a2a_backend != "none" or coordinated) and not static:
            s.value_error("DSpark DP MoE or prefill coordination requires SGLANG_RAGGED_VERIFY_MODE=static.", where)
        if s.attn_cp_size > 1:
            s.value_error(
                f"DSpark with dp attention does not support context parallel (attn_cp_size={s.attn_cp_size}).", where
            )
        if s.speculative_moe_a2a_backend not in (None, s.moe_a2a_backend):
            s.value_error(
                "DSpark ignores --speculative-moe-a2a-backend; with dp attention it must match the target "
                f"moe_a2a_backend={s.moe_a2a_backend!r} (got {s.speculative_moe_a2a_backend!r}).",
                where,
            )
    if s.pp_size != 1 and s.disaggregation_mode != "prefill":
        s.value_error(
            "DSpark pipeline parallelism requires PD prefill; decode and non-disaggregated serving require pp_size == "
            "1.",
            where,
        )
    if s.speculative_draft_model_path is None:
        config = s.model.config if s.model is not None else {}
        if any(config.get(key) is not None for key in _DSPARK_KEYS):
            s.set("the target carries its draft", where, speculative_draft_model_path=s.model_path)
            s.set("the target's", where, speculative_draft_model_revision=s.revision)
        else:
            s.value_error("DSpark dense speculative decoding requires setting --speculative-draft-model-path.", where)
    _chain(s, where)
    _dspark_tokens(s, where)
    fill_running_requests(s, f"{_HOOK}:860")


def _dspark_tokens(s: State, where: str) -> None:
    block = s.speculative_dspark_block_size
    gamma: int | None = None
    if block is not None:
        if block <= 0:
            s.value_error(f"DSpark requires --speculative-dspark-block-size to be positive, got {block}.", where)
        gamma = block
    else:
        gamma = s.draft.block_size if s.draft is not None else None
        if gamma is None and s.speculative_num_draft_tokens is None:
            gamma = 7
    tokens = s.speculative_num_draft_tokens
    if gamma is not None:
        if tokens is not None and tokens != gamma + 1:
            s.value_error(
                f"DSpark speculative_num_draft_tokens must equal gamma + 1 (= {gamma + 1} for gamma={gamma}), but got "
                f"speculative_num_draft_tokens={tokens}.",
                where,
            )
        s.set("gamma + 1", where, speculative_num_draft_tokens=gamma + 1)
    if s.speculative_num_draft_tokens < 2:
        s.value_error(
            f"DSpark speculative_num_draft_tokens must be >= 2 (= gamma + 1), got {s.speculative_num_draft_tokens}.",
            where,
        )


def uno(s: State) -> None:
    """A tree over the target itself with a LoRA draft: one GPU and fa3 only."""
    where = f"{_HOOK}:449"
    if s.speculative_draft_model_path is not None:
        s.value_error("UNO reuses the target model and does not accept --speculative-draft-model-path.", where)
    if s.uno_lora_path is None:
        s.value_error("UNO requires --uno-lora-path.", where)
    if s.enable_deterministic_inference:
        s.value_error(
            "UNO does not support --enable-deterministic-inference because its sampling path does not use per-request "
            "seeds.",
            where,
        )
    if s.enable_strict_thinking:
        s.value_error("UNO does not support --enable-strict-thinking because it requires grammar decoding.", where)
    width = s.speculative_num_draft_tokens
    if width is None or width < 1:
        s.value_error(
            "UNO requires --speculative-num-draft-tokens to be a positive integer denoting the linear width or tree "
            "verify width Q.",
            where,
        )
    topk = 1 if s.speculative_eagle_topk is None else s.speculative_eagle_topk
    if topk < 1:
        s.value_error(f"UNO requires --speculative-eagle-topk to be at least 1, got {topk}.", where)
    if topk > 1:
        _uno_tree(s, width, topk, where)
    else:
        s.set("UNO without a tree", where, speculative_num_steps=1, speculative_eagle_topk=1)
    if (s.tp_size, s.pp_size) != (1, 1):
        s.value_error("UNO requires TP=PP=1.", where)
    if attn_dp_enabled(s) or s.attn_cp_size != 1:
        s.value_error("UNO does not support DP attention or context parallelism.", where)
    if s.enable_lora or s.lora_paths:
        s.value_error("UNO does not support public Multi-LoRA serving.", where)
    s.set("UNO", where, enable_lora_overlap_loading=False, lora_strict_loading=True)
    if s.speculative_use_rejection_sampling:
        s.value_error(
            "UNO manages its own stochastic verification and does not use --speculative-use-rejection-sampling.", where
        )
    s.set("not with UNO", where, enable_mixed_chunk=False)
    prefill, decode = attention_backends(s)
    if (prefill, decode) != ("fa3", "fa3"):
        s.value_error(
            f"UNO requires FA3 for both prefill and decode attention; got prefill={prefill!r}, decode={decode!r}.",
            where,
        )


def _uno_tree(s: State, width: int, topk: int, where: str) -> None:
    steps = s.speculative_num_steps
    if steps is None:
        s.value_error(
            "UNO tree mode requires --speculative-num-steps so its draft width F can be derived as "
            "speculative_num_steps + 1.",
            where,
        )
    if steps < 1:
        s.value_error(f"UNO tree mode requires --speculative-num-steps to be positive, got {steps}.", where)
    depth = steps + 1
    if width < depth:
        s.value_error(f"UNO tree mode requires Q >= F; got Q={width}, F={depth}.", where)
    if width > 128:
        s.value_error(f"UNO tree mode currently supports at most Q=128 verify nodes, got Q={width}.", where)
    if width * topk > 2048:
        s.value_error(f"UNO tree mode currently supports Q*K <= 2048; got Q*K={width}*{topk}={width * topk}.", where)
    capacity, level = 1, 1
    for _ in range(steps):
        level *= topk
        capacity += level
        if capacity >= width:
            break
    if width > capacity:
        s.value_error(
            f"UNO tree mode cannot build the requested Q from F and K: Q={width} exceeds capacity={capacity} for "
            f"F={depth}, K={topk}.",
            where,
        )
    parents = topk * max(steps - 1, 0) + 1
    if width - 1 > parents:
        s.value_error(
            f"UNO tree mode cannot represent the requested Q in EAGLE's parent-list ABI: Q-1={width - 1} exceeds "
            f"K*(F-2)+1={parents} for F={depth}, K={topk}.",
            where,
        )
    if s.enable_two_batch_overlap:
        s.value_error("UNO tree mode does not yet support two-batch overlap.", where)
    if s.speculative_accept_threshold_single != 1.0 or s.speculative_accept_threshold_acc != 1.0:
        s.value_error(
            "UNO tree mode reuses EAGLE target-only sampling and requires both speculative accept thresholds to be "
            "1.0.",
            where,
        )
    s.set("UNO tree", where, speculative_num_steps=steps, speculative_eagle_topk=topk)
