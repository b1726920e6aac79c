"""Speculative decoding (speculative_hook.py): algorithm, tokens, backends, and what each algorithm refuses."""

from __future__ import annotations

from planner.engine.dialects import known_algorithms
from planner.engine.state import State
from planner.engine.v0_5_23.block_draft import dflash, dspark, fill_running_requests, uno
from planner.engine.v0_5_23.view import attention_backends, attn_dp_enabled

__all__ = ["speculative"]

_HOOK = "arg_groups/speculative_hook.py"
_OWN_DRAFT = frozenset(
    {
        "BailingMoeForCausalLM",
        "BailingMoeV2ForCausalLM",
        "BailingMoeV2_5ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
        "HYV3ForCausalLM",
        "HYV4ForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
    }
)
"""Targets that carry their own draft layers: the draft path defaults to the target (speculative_hook.py:1110)."""
_TREE_PAGES = ("flashinfer", "fa3", "triton")
_GEMMA_DRAFTS = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")


def speculative(s: State) -> None:
    where = f"{_HOOK}:121"
    if s.speculative_draft_model_path is not None and s.speculative_draft_model_revision is None:
        s.set("default revision", where, speculative_draft_model_revision="main")
    if s.speculative_moe_runner_backend is None:
        runner = s.moe_runner_backend
        runner = "flashinfer_trtllm" if runner == "flashinfer_megamoe" else runner
        runner = "auto" if runner.startswith("lora_") else runner
        s.set("the target's", "arg_groups/overrides.py:1632", speculative_moe_runner_backend=runner)
    _algorithm(s)
    algorithm = s.speculative_algorithm
    if (
        s.disaggregation_mode == "decode"
        and s.disaggregation_decode_enable_radix_cache
        and algorithm not in (None, "DSPARK", "EAGLE", "EAGLE3")
    ):
        s.value_error(
            "--disaggregation-decode-enable-radix-cache is incompatible with speculative decoding "
            f"(--speculative-algorithm {algorithm})",
            where,
        )
    if s.speculative_use_block_verification:
        if algorithm not in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"):
            s.value_error(
                "--speculative-use-block-verification only supports EAGLE / EAGLE3 / NEXTN / DFLASH / DSPARK.", where
            )
        if algorithm in ("EAGLE", "EAGLE3") and not s.speculative_use_rejection_sampling:
            s.set("block verification needs it", where, speculative_use_rejection_sampling=True)
    window, sink = s.speculative_draft_window_size, s.speculative_draft_sink_size
    if window is not None and window <= 0:
        s.value_error(f"--speculative-draft-window-size must be positive, got {window}.", where)
    if sink is not None:
        if sink < 0:
            s.value_error(f"--speculative-draft-sink-size must be non-negative, got {sink}.", where)
        if window is None:
            s.value_error("--speculative-draft-sink-size requires --speculative-draft-window-size.", where)
    if algorithm is not None and algorithm not in known_algorithms(s.version):
        s.value_error(f"Unknown speculative algorithm name: {algorithm}", "speculative/spec_info.py:65")
    if s.flag("SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION") and (
        algorithm not in ("EAGLE", "EAGLE3", "DSPARK") or s.enable_multi_layer_eagle
    ):
        s.value_error("DP spec/prefill coordination requires single-layer EAGLE, EAGLE3 or DSPARK", where)
    if s.speculative_adaptive:
        _adaptive(s)
    handler = {
        "DFLASH": dflash,
        "UNO": uno,
        "DSPARK": dspark,
        "EAGLE": _eagle,
        "EAGLE3": _eagle,
        "STANDALONE": _eagle,
        "FROZEN_KV_MTP": _frozen_kv,
        "NGRAM": _ngram,
    }.get(algorithm)
    if handler is not None:
        handler(s)


def _algorithm(s: State) -> None:
    where = f"{_HOOK}:81"
    asked = s.speculative_algorithm
    if asked is None:
        return
    name = asked.upper()
    gemma = s.draft is not None and s.draft.architecture in _GEMMA_DRAFTS
    if name == "EAGLE3" and gemma:
        s.value_error(
            "Gemma4AssistantForCausalLM draft requires --speculative-algorithm NEXTN or EAGLE; EAGLE3 is not "
            "supported for this draft architecture.",
            where,
        )
    if name in ("NEXTN", "EAGLE"):
        name = "FROZEN_KV_MTP" if gemma else "EAGLE"
    s.set("alias" if asked.upper() != name else "upper case", where, speculative_algorithm=name)


def _adaptive(s: State) -> None:
    where = f"{_HOOK}:1374"
    reason = None
    if s.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        reason = "only for EAGLE and EAGLE3"
    elif s.speculative_eagle_topk not in (None, 1):
        reason = "only for topk 1"
    elif attn_dp_enabled(s):
        reason = "not with attention DP"
    elif s.enable_multi_layer_eagle or s.enable_two_batch_overlap or s.enable_pdmux:
        reason = "not with multi-layer EAGLE, two-batch overlap or PD multiplexing"
    if reason:
        s.set(f"adaptive speculation: {reason}", where, speculative_adaptive=False)
        return
    if s.speculative_adaptive_config is not None:
        s.notes.append("the adaptive configuration file is not read here; its candidate steps may refuse the launch")
        return
    where = f"{_HOOK}:1392"
    candidates = [0, 1, 3, 5, 7]
    if s.speculative_eagle_topk is None:
        s.set("adaptive speculation", where, speculative_eagle_topk=1)
    if s.speculative_num_steps is None:
        s.set("adaptive speculation", where, speculative_num_steps=candidates[len(candidates) // 2])
    if s.speculative_num_steps not in candidates:
        s.value_error(
            f"--speculative-num-steps={s.speculative_num_steps} is not in the adaptive config candidate_steps "
            f"{candidates}. Pass one of those values.",
            where,
        )
    s.set("adaptive speculation", where, speculative_num_draft_tokens=s.speculative_num_steps + 1)


def _frozen_kv(s: State) -> None:
    where = f"{_HOOK}:990"
    fill_running_requests(s, where)
    s.set("not with FROZEN_KV_MTP", where, enable_mixed_chunk=False)


def _eagle(s: State) -> None:
    where = f"{_HOOK}:1072"
    if s.speculative_algorithm == "STANDALONE" and attn_dp_enabled(s):
        s.value_error("Currently standalone speculative decoding does not support dp attention.", where)
    fill_running_requests(s, where)
    if s.enable_mixed_chunk and s.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        s.set(f"not with {s.speculative_algorithm}", where, enable_mixed_chunk=False)
    architecture = s.model.architecture if s.model else ""
    if architecture in _OWN_DRAFT and s.speculative_draft_model_path is None:
        s.set("the target carries its draft layers", f"{_HOOK}:1110", speculative_draft_model_path=s.model_path)
        s.set("the target's", f"{_HOOK}:1110", speculative_draft_model_revision=s.revision)
    if not s.speculative_adaptive and s.speculative_num_steps is None:
        s.require(s.speculative_eagle_topk is None and s.speculative_num_draft_tokens is None, "", f"{_HOOK}:1158")
        wide = architecture in ("LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM")
        steps, topk, tokens = (5, 4, 8) if wide and s.speculative_algorithm != "STANDALONE" else (3, 1, 4)
        s.set(
            "chosen by architecture",
            f"{_HOOK}:1430",
            speculative_num_steps=steps,
            speculative_eagle_topk=topk,
            speculative_num_draft_tokens=tokens,
        )
    topk = s.speculative_eagle_topk
    if "trtllm_mha" in attention_backends(s):
        _need_topk(s)
        if topk > 1:
            s.value_error("trtllm_mha backend only supports topk = 1 for speculative decoding.", f"{_HOOK}:1179")
    if s.speculative_use_rejection_sampling:
        _rejection_sampling(s)
    if topk == 1 and s.speculative_num_draft_tokens != s.speculative_num_steps + 1:
        s.set(
            "a chain has num_steps + 1 tokens",
            f"{_HOOK}:1260",
            speculative_num_draft_tokens=s.speculative_num_steps + 1,
        )
    _need_topk(s)
    if topk > 1 and s.page_size > 1 and s.attention_backend not in _TREE_PAGES:
        s.value_error(
            f"speculative_eagle_topk > 1 with page_size > 1 is only supported on {_TREE_PAGES}; got "
            f"attention_backend={s.attention_backend!r}. Use page_size == 1 or one of those backends.",
            f"{_HOOK}:1271",
        )


def _need_topk(s: State) -> None:
    if s.speculative_eagle_topk is None:
        s.refuse("TypeError", "'>' not supported between instances of 'NoneType' and 'int'", f"{_HOOK}:1271")


def _rejection_sampling(s: State) -> None:
    where = f"{_HOOK}:1200"
    if s.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        s.refuse(
            "NotImplementedError",
            "--speculative-use-rejection-sampling is only supported for EAGLE / EAGLE3 / NEXTN, not "
            f"speculative_algorithm={s.speculative_algorithm}.",
            where,
        )
    if s.speculative_eagle_topk != 1:
        s.value_error("--speculative-use-rejection-sampling requires --speculative-eagle-topk=1.", where)
    if s.speculative_accept_threshold_single != 1.0 or s.speculative_accept_threshold_acc != 1.0:
        s.value_error(
            "--speculative-use-rejection-sampling is incompatible with --speculative-accept-threshold-single / "
            "--speculative-accept-threshold-acc; rejection sampling ignores the accept thresholds.",
            where,
        )


def _ngram(s: State) -> None:
    where = f"{_HOOK}:1285"
    fill_running_requests(s, where)
    s.set("not with NGRAM", where, enable_mixed_chunk=False)
    s.set("the largest breadth", where, speculative_eagle_topk=s.speculative_ngram_max_bfs_breadth)
    if s.speculative_num_draft_tokens is None:
        s.set("default of NGRAM", where, speculative_num_draft_tokens=12)
    if s.speculative_num_steps is None:
        if s.speculative_eagle_topk == 0:
            s.refuse("ZeroDivisionError", "integer division or modulo by zero", where)
        steps = s.speculative_num_draft_tokens // s.speculative_eagle_topk
        s.set("tokens over breadth", where, speculative_num_steps=steps)
    if s.speculative_ngram_external_corpus_path is not None:
        budget, tokens = s.speculative_ngram_external_sam_budget, s.speculative_num_draft_tokens
        if budget <= 0:
            s.value_error(
                "--speculative-ngram-external-sam-budget must be positive when "
                "--speculative-ngram-external-corpus-path is set.",
                where,
            )
        if s.speculative_ngram_external_corpus_max_tokens <= 0:
            s.value_error(
                "--speculative-ngram-external-corpus-max-tokens must be positive when "
                "--speculative-ngram-external-corpus-path is set.",
                where,
            )
        if budget > tokens - 1:
            s.value_error(
                "speculative_ngram_external_sam_budget must be less than or equal to speculative_num_draft_tokens - 1 "
                f"({tokens - 1}).",
                where,
            )
    if s.speculative_eagle_topk > 1 and s.page_size > 1 and s.attention_backend != "flashinfer":
        s.value_error(
            f"speculative_eagle_topk({s.speculative_eagle_topk}) > 1 with page_size({s.page_size}) > 1 is unstable "
            "and produces incorrect results for paged attention backends. This combination is only supported for the "
            "'flashinfer' backend.",
            where,
        )
    if attn_dp_enabled(s):
        s.value_error("Currently ngram speculative decoding does not support dp attention.", where)
