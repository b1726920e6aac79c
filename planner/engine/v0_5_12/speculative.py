"""Speculative decoding in 0.5.12.post1 (server_args.py:3560-3960)."""

from __future__ import annotations

from planner.engine.dialects import known_algorithms
from planner.engine.state import State

__all__ = ["speculative"]

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
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
    }
)


def speculative(s: State) -> None:
    where = "server_args.py:3560"
    if s.speculative_draft_model_path is not None and s.speculative_draft_model_revision is None:
        s.set("default revision", where, speculative_draft_model_revision="main")
    if s.speculative_moe_runner_backend is None:
        s.set("the target's", where, speculative_moe_runner_backend=s.moe_runner_backend)
    _algorithm(s)
    name = s.speculative_algorithm
    if name is not None and name not in known_algorithms("0.5.12.post1"):
        s.value_error(f"Unknown speculative algorithm name: {name}", "speculative/spec_info.py:60")
    if s.speculative_skip_dp_mlp_sync:
        s.require(
            name == "EAGLE",
            f"--speculative-skip-dp-mlp-sync is only supported with speculative_algorithm == EAGLE, got {name}.",
            where,
        )
    if name == "DFLASH":
        _dflash(s)
    elif name == "FROZEN_KV_MTP":
        _running(s, where)
        s.set("FROZEN_KV_MTP runs without overlap and mixed chunks", where, disable_overlap_schedule=True)
        s.set("FROZEN_KV_MTP runs without overlap and mixed chunks", where, enable_mixed_chunk=False)
    elif name in ("EAGLE", "EAGLE3", "STANDALONE"):
        _eagle(s)
    elif name == "NGRAM":
        _ngram(s)
    if s.speculative_adaptive and (
        name not in ("EAGLE", "EAGLE3")
        or s.speculative_eagle_topk != 1
        or s.enable_dp_attention
        or s.enable_multi_layer_eagle
        or s.enable_two_batch_overlap
        or s.enable_pdmux
    ):
        s.set("adaptive speculation is not supported here", "server_args.py:3950", speculative_adaptive=False)


def _algorithm(s: State) -> None:
    where = "server_args.py:330"
    asked = s.speculative_algorithm
    if asked is None:
        return
    name = asked.upper()
    gemma = s.draft is not None and s.draft.architecture == "Gemma4AssistantForCausalLM"
    if name == "EAGLE3" and gemma:
        s.value_error(
            "Gemma4AssistantForCausalLM draft requires --speculative-algorithm NEXTN or EAGLE; EAGLE3 is not "
            "supported for this draft architecture.",
            where,
        )
    if name in ("NEXTN", "EAGLE"):
        name = "FROZEN_KV_MTP" if gemma else "EAGLE"
    s.set("alias" if asked.upper() != name else "upper case", where, speculative_algorithm=name)


def _running(s: State, where: str) -> None:
    if s.max_running_requests is None:
        s.set(f"default of {s.speculative_algorithm}", where, max_running_requests=48)
        if not s.disable_cuda_graph:
            s.notes.append(
                f"graphs were sized before the default of 48 requests: they reach {s.cuda_graph_max_bs}; at run time "
                "they are captured up to the request pool; give --max-running-requests and --cuda-graph-max-bs"
            )


def _dflash(s: State) -> None:
    where = "server_args.py:3590"
    if s.enable_dp_attention:
        s.value_error("Currently DFLASH speculative decoding does not support dp attention.", "server_args.py:3592")
    if s.pp_size != 1:
        s.value_error("Currently DFLASH speculative decoding only supports pp_size == 1.", "server_args.py:3597")
    if s.speculative_draft_model_path is None:
        s.value_error(
            "DFLASH speculative decoding requires setting --speculative-draft-model-path.", "server_args.py:3602"
        )
    s.set("DFLASH drafts a block in one step", "server_args.py:3614", speculative_num_steps=1)
    s.set("DFLASH is a chain", "server_args.py:3623", speculative_eagle_topk=1)
    block = s.speculative_dflash_block_size
    if block is not None:
        if block <= 0:
            s.value_error(f"DFLASH requires --speculative-dflash-block-size to be positive, got {block}.", where)
        if s.speculative_num_draft_tokens not in (None, block):
            s.value_error(
                "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ. For "
                f"DFLASH they must match. speculative_num_draft_tokens={s.speculative_num_draft_tokens}, "
                f"speculative_dflash_block_size={block}.",
                "server_args.py:3638",
            )
        s.set("the block size", "server_args.py:3638", speculative_num_draft_tokens=block)
    window = s.speculative_draft_window_size
    if window is not None and window <= 0:
        s.value_error(f"--speculative-draft-window-size must be positive, got {window}.", where)
    if s.speculative_num_draft_tokens is None:
        known = s.draft.block_size if s.draft is not None else None
        because = "block size of the draft model" if known else "no block size in the draft model's config"
        s.set(because, "server_args.py:3660", speculative_num_draft_tokens=known or 16)
    tokens = s.speculative_num_draft_tokens
    if window is not None and window < tokens:
        s.value_error(
            "--speculative-draft-window-size must be >= --speculative-num-draft-tokens (block_size). "
            f"window_size={window}, block_size={tokens}.",
            where,
        )
    _running(s, "server_args.py:3697")
    s.set("DFLASH runs without the overlap scheduler", "server_args.py:3707", disable_overlap_schedule=True)
    s.set("DFLASH runs without mixed chunks", "server_args.py:3713", enable_mixed_chunk=False)


def _eagle(s: State) -> None:
    where = "server_args.py:3735"
    name = s.speculative_algorithm
    if name == "STANDALONE" and s.enable_dp_attention:
        s.value_error("Currently standalone speculative decoding does not support dp attention.", where)
    _running(s, where)
    if s.speculative_eagle_topk is not None and s.speculative_eagle_topk > 1:
        s.set("a tree runs without the overlap scheduler", "server_args.py:3748", disable_overlap_schedule=True)
    elif not s.flag("SGLANG_ENABLE_SPEC_V2", default=True):
        s.set("SGLANG_ENABLE_SPEC_V2 is off", "server_args.py:3755", disable_overlap_schedule=True)
    s.set(f"{name} runs without mixed chunks", where, enable_mixed_chunk=False)
    architecture = s.model.architecture if s.model is not None else ""
    if architecture in _OWN_DRAFT and s.speculative_draft_model_path is None:
        s.set("the target carries its draft layers", where, speculative_draft_model_path=s.model_path)
        s.set("the target's", where, speculative_draft_model_revision=s.revision)
    if s.speculative_num_steps is None:
        s.require(s.speculative_eagle_topk is None and s.speculative_num_draft_tokens is None, "", where)
        wide = architecture in ("LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM")
        steps, topk, tokens = (5, 4, 8) if wide and name != "STANDALONE" else (3, 1, 4)
        s.set(
            "chosen by architecture",
            "server_args.py:7920",
            speculative_num_steps=steps,
            speculative_eagle_topk=topk,
            speculative_num_draft_tokens=tokens,
        )
    backends = (s.attention_backend, s.decode_attention_backend, s.prefill_attention_backend)
    if "trtllm_mha" in backends:
        _need_topk(s)
        if s.speculative_eagle_topk > 1:
            s.value_error("trtllm_mha backend only supports topk = 1 for speculative decoding.", where)
    if s.speculative_eagle_topk == 1 and s.speculative_num_draft_tokens != s.speculative_num_steps + 1:
        s.set(
            "a chain has num_steps + 1 tokens",
            "server_args.py:3833",
            speculative_num_draft_tokens=s.speculative_num_steps + 1,
        )
    _need_topk(s)
    if s.speculative_eagle_topk > 1 and s.page_size > 1 and s.attention_backend not in ("flashinfer", "fa3"):
        s.value_error(
            "speculative_eagle_topk > 1 with page_size > 1 is unstable and produces incorrect results for paged "
            "attention backends. This combination is only supported for the 'flashinfer' backend.",
            "server_args.py:3837",
        )


def _need_topk(s: State) -> None:
    if s.speculative_eagle_topk is None:
        s.refuse("TypeError", "'>' not supported between instances of 'NoneType' and 'int'", "server_args.py:3837")


def _ngram(s: State) -> None:
    where = "server_args.py:3860"
    _running(s, where)
    s.set("NGRAM runs without the overlap scheduler", where, disable_overlap_schedule=True)
    s.set("NGRAM runs without mixed chunks", where, enable_mixed_chunk=False)
    s.set("the largest breadth", where, speculative_eagle_topk=s.speculative_ngram_max_bfs_breadth)
    if s.speculative_num_draft_tokens is None:
        s.set("default of NGRAM", where, speculative_num_draft_tokens=12)
    if s.speculative_ngram_external_corpus_path is not None:
        budget, tokens = s.speculative_ngram_external_sam_budget, s.speculative_num_draft_tokens
        if budget <= 0:
            s.value_error(
                "--speculative-ngram-external-sam-budget must be positive when "
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
    if s.enable_dp_attention:
        s.value_error("Currently ngram speculative decoding does not support dp attention.", where)
