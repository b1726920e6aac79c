"""All-to-all backends of expert parallelism and their token budgets (moe_hook.py:284-760, mega_moe_hook.py:161)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.view import attn_dp_enabled

__all__ = ["a2a", "flashinfer_token_budget", "late_deepep_v2", "mega_moe_budget"]

_HOOK = "arg_groups/moe_hook.py"
_OVERRIDES = "arg_groups/overrides.py"
_SPANNING = frozenset(
    {
        "ascend_fuseep",
        "deepep",
        "deepep_v2",
        "flashinfer",
        "flashinfer_megamoe",
        "megamoe",
        "mooncake",
        "mori",
        "nixl",
        "pplx",
    }
)
"""All-to-all backends that span the whole tensor-parallel group (overrides.py:1581)."""
_NO_FALLBACK = frozenset(
    {
        "DeepseekV4ForCausalLM",
        "InternS2PreviewForConditionalGeneration",
        "MellumForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
    }
)


def a2a(s: State) -> None:
    """All-to-all backends."""
    backend = s.moe_a2a_backend
    if s.enable_waterfill and backend not in ("deepep", "megamoe"):
        s.set("--enable-waterfill needs it", f"{_OVERRIDES}:1596", moe_a2a_backend="deepep")
        backend = "deepep"
    if backend in _SPANNING:
        s.set(f"{backend} spans the tensor-parallel group", f"{_OVERRIDES}:1611", ep_size=s.tp_size)
    if backend in ("deepep", "megamoe") and s.enable_waterfill:
        if s.disable_shared_experts_fusion:
            s.set("waterfill fuses shared experts", f"{_OVERRIDES}:1557", disable_shared_experts_fusion=False)
    elif backend in ("flashinfer", "flashinfer_megamoe", "deepep_v2"):
        s.set(f"not with {backend}", f"{_OVERRIDES}:1557", disable_shared_experts_fusion=True)
    where = f"{_HOOK}:284"
    if s.enable_waterfill:
        s.set("waterfill fuses shared experts", where, enforce_shared_experts_fusion=True)
    if backend != "flashinfer" and s.flashinfer_a2a_dispatch_type not in (None, "auto"):
        s.value_error("--flashinfer-a2a-dispatch-type requires --moe-a2a-backend flashinfer.", where)
    handler = {
        "flashinfer_megamoe": _flashinfer_megamoe,
        "deepep": _deepep,
        "deepep_v2": _deepep_v2,
        "flashinfer": _flashinfer,
        "mori": _mori,
        "pplx": _pplx,
    }.get(backend)
    if backend == "ascend_tp":
        s.set("ascend_tp is none on CUDA", where, moe_a2a_backend="none")
    if handler is not None:
        handler(s, where)


def _deepep(s: State, where: str) -> None:
    if s.moe_runner_backend == "flashinfer_cutedsl":
        if s.deepep_mode == "auto":
            s.set("CuteDSL has low latency dispatch only", where, deepep_mode="low_latency")
        elif s.deepep_mode == "normal":
            s.value_error(
                "flashinfer_cutedsl FP4 MoE only supports DeepEP low_latency dispatch (masked layout). DeepEP normal "
                "(prefill) dispatch has no CuteDSL FP4 handler. Pass --deepep-mode low_latency or auto.",
                where,
            )
    if s.deepep_mode == "normal":
        for phase in ("decode", "prefill"):
            s.set_graph("DeepEP normal mode has no graphs", where, phase, backend="disabled")


def _deepep_v2(s: State, where: str) -> None:
    supported = (
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Glm5NextForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "MiMoV2FlashForCausalLM",
        "MiMoV2ForCausalLM",
        "Qwen3MoeForCausalLM",
    )
    if s.model is not None and s.model.architecture not in supported:
        s.value_error(f"DeepEP v2 MoE is not validated for {s.model.architecture!r}.", f"{_HOOK}:709")
    if s.moe_runner_backend == "auto":
        s.set("DeepEP v2", where, moe_runner_backend="deep_gemm")
    elif s.moe_runner_backend != "deep_gemm":
        s.value_error(
            "DeepEP v2 MoE currently supports only --moe-runner-backend deep_gemm. Got "
            f"{s.moe_runner_backend!r}. Add a runner adapter before enabling DeepEP v2 with other MoE runners.",
            where,
        )
    if s.enable_two_batch_overlap or s.enable_single_batch_overlap:
        s.value_error(
            "DeepEP v2 MoE has not implemented the TBO/SBO overlap hooks yet. Disable --enable-two-batch-overlap and "
            "--enable-single-batch-overlap when using --moe-a2a-backend deepep_v2.",
            where,
        )
    if s.deepep_v2_mode == "direct" and s.nnodes > 1:
        s.value_error(
            f"--deepep-v2-mode direct is NVLink-only and cannot run across nodes (nnodes={s.nnodes}); pass "
            "--deepep-v2-mode hybrid.",
            where,
        )
    s.set_graph("DeepEP v2", where, "prefill", backend="disabled")


def _flashinfer(s: State, where: str) -> None:
    s.require(
        attn_dp_enabled(s) and s.attn_dp_size == s.tp_size,
        "Flashinfer MoE A2A requires --attn-dp-size equal to --tp-size, except for Muse Spark TP4/EP4 or TP8/EP8 "
        "prefill sequence parallelism.",
        where,
    )
    if s.flashinfer_a2a_dispatch_type is not None:
        if s.moe_runner_backend == "flashinfer_trtllm":
            s.set("FlashInfer all-to-all routes", where, moe_runner_backend="flashinfer_trtllm_routed")
        _dispatch_type(s)
    s.require(
        s.moe_runner_backend
        in ("flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm", "flashinfer_trtllm_routed", "deep_gemm"),
        "FlashInfer MoE A2A is supported with flashinfer_cutlass, flashinfer_cutedsl, flashinfer_trtllm, "
        "flashinfer_trtllm_routed, or deep_gemm.",
        where,
    )


def _dispatch_type(s: State) -> None:
    where = f"{_HOOK}:166"
    nvfp4 = s.quantization == "modelopt_fp4"
    kind = s.flashinfer_a2a_dispatch_type
    if kind == "auto":
        kind = "mxfp8" if s.quantization == "mxfp8" else "nvfp4" if nvfp4 else "bf16"
    if kind == "mxfp8":
        if s.quantization != "mxfp8":
            s.value_error("--flashinfer-a2a-dispatch-type mxfp8 requires --quantization mxfp8.", where)
        if s.moe_runner_backend != "flashinfer_trtllm_routed":
            s.value_error(
                "--flashinfer-a2a-dispatch-type mxfp8 requires --moe-runner-backend flashinfer_trtllm_routed.", where
            )
    elif kind == "nvfp4" and not nvfp4:
        s.value_error(
            "--flashinfer-a2a-dispatch-type nvfp4 requires NVFP4/modelopt-FP4 quantization or hybrid NVFP4 MoE "
            "metadata.",
            where,
        )
    s.set("by quantisation", where, flashinfer_a2a_dispatch_type=kind)


def _flashinfer_megamoe(s: State, where: str) -> None:
    allowed = (
        "BeamForCausalLM",
        "DeepseekV2ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Glm4MoeForCausalLM",
        "GlmMoeDsaForCausalLM",
        "KimiK3ForConditionalGeneration",
        "KimiK3LinearForCausalLM",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen3MoeForCausalLM",
    )
    if s.model is not None and not set(s.model.architectures) & set(allowed):
        s.value_error(
            f"FlashInfer MegaMOE is not validated for model architectures {list(s.model.architectures)}. Supported "
            f"architectures: {sorted(allowed)}.",
            f"{_HOOK}:237",
        )
    quantization = s.quantization
    if quantization not in ("mxfp8", "modelopt_fp4"):
        s.value_error(
            "FlashInfer MegaMOE currently supports only MXFP8, ModelOpt NVFP4, FP4-expert, hybrid NVFP4 MoE "
            "checkpoints, or nvfp4_online with SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1; got "
            f"quantization={quantization!r}. Standard FP8 MoE checkpoints are not supported.",
            f"{_HOOK}:237",
        )
    s.require(
        attn_dp_enabled(s) and s.attn_dp_size == s.tp_size,
        "FlashInfer MegaMOE is only supported with --attn-dp-size equal to --tp-size",
        where,
    )
    if s.moe_runner_backend == "auto":
        s.set("FlashInfer MegaMOE", where, moe_runner_backend="flashinfer_megamoe")
    s.require(
        s.moe_runner_backend == "flashinfer_megamoe",
        "FlashInfer MegaMOE a2a backend requires --moe-runner-backend flashinfer_megamoe",
        where,
    )
    if not s.platform.sm100:
        s.value_error(
            "FlashInfer MegaMOE currently requires an SM100-family CUDA device for all supported quantization formats.",
            where,
        )


def _mori(s: State, where: str) -> None:
    if s.deepep_mode == "auto":
        s.set("MoRI", where, deepep_mode="normal")
    if s.chunked_prefill_size > 0 and s.disaggregation_mode != "decode":
        capacity = int(s.env.get("SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 4096))
        s.require(
            s.chunked_prefill_size <= capacity,
            "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK (default 4096) must be >= the per-rank MoRI dispatch tokens "
            "(chunked_prefill_size by default)",
            where,
        )


def _pplx(s: State, where: str) -> None:
    if s.deepep_mode == "normal":
        s.value_error(
            "moe_a2a_backend='pplx' only supports low-latency mode; set --deepep-mode to 'low_latency' or 'auto'.",
            where,
        )
    if s.deepep_mode == "auto":
        s.set("pplx", where, deepep_mode="low_latency")
    s.require(
        s.attn_dp_size >= 2,
        "moe_a2a_backend='pplx' requires attention DP with at least 2 groups (--attn-dp-size >= 2).",
        where,
    )
    s.require(
        s.moe_runner_backend in ("deep_gemm", "auto"),
        "moe_a2a_backend='pplx' is only supported with --moe-runner-backend deep_gemm (or auto).",
        where,
    )
    if s.moe_runner_backend == "auto":
        s.set("pplx", where, moe_runner_backend="deep_gemm")
    if s.chunked_prefill_size > 0 and s.disaggregation_mode != "decode":
        required = max(s.chunked_prefill_size, s.asked.get("cuda_graph_max_bs_decode") or 0)
        s.require(
            required <= int(s.env.get("SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128)),
            "SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK (default 128) must be >= the per-rank pplx dispatch tokens "
            "(chunked_prefill_size, or the decode cuda-graph batch size)",
            where,
        )


def _decode_tokens(s: State) -> tuple[int, int]:
    """Requests and tokens of one request in the largest decode graph of a rank (moe_hook.py:656)."""
    decode = s.graph("decode")
    if s.disaggregation_mode == "prefill" or decode["backend"] == "disabled":
        return 0, 1
    requests = decode["max_bs"] or 0
    if s.max_running_requests is not None:
        requests = min(requests, max(1, s.max_running_requests // s.attn_dp_size))
    return requests, (s.speculative_num_draft_tokens or 1) if s.speculative_algorithm else 1


def flashinfer_token_budget(s: State) -> None:
    if s.moe_a2a_backend != "flashinfer":
        return
    where = f"{_HOOK}:749"
    if s.disaggregation_mode != "decode" and s.chunked_prefill_size <= 0:
        s.value_error(
            "FlashInfer MoE A2A requires chunked prefill: eager prefill dispatches the whole per-rank extend batch "
            "through a fixed-size workspace, so --chunked-prefill-size must be > 0.",
            where,
        )
    tokens = 0
    prefill_tokens = max(0, s.chunked_prefill_size or 0)
    if s.disaggregation_mode != "decode":
        tokens = prefill_tokens
        prefill = s.graph("prefill")
        if prefill["backend"] != "disabled":
            tokens = max(tokens, prefill["max_bs"] or 0)
    requests, per_request = _decode_tokens(s)
    required = max(tokens, requests * per_request)
    configured = s.env.get("SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK")
    capacity = int(configured) if configured else max(prefill_tokens, 4096)
    if required > capacity:
        s.value_error(
            f"FlashInfer MoE A2A per-rank token budget exceeds its workspace: required={required} tokens per rank "
            f"(prefill chunk, prefill graph, or decode/verify graph), capacity={capacity}.",
            where,
        )


def late_deepep_v2(s: State) -> None:
    draft = s.speculative_moe_a2a_backend
    if draft is None and s.speculative_algorithm and s.speculative_algorithm != "NGRAM":
        draft = s.moe_a2a_backend
    if draft == "deepep_v2":
        s.value_error(
            "DeepEP v2 MoE is not validated as a speculative draft backend. Select another "
            "--speculative-moe-a2a-backend.",
            f"{_HOOK}:624",
        )
    if s.moe_a2a_backend != "deepep_v2":
        return
    where = f"{_HOOK}:679"
    capacity = int(s.env.get("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128))
    if s.disaggregation_mode != "decode":
        ceiling = max(0, s.chunked_prefill_size) or s.max_prefill_tokens or 0
        required = -(-ceiling // max(1, s.tp_size // s.attn_dp_size))
        if required > capacity:
            s.value_error(
                "DeepEP v2 per-rank prefill budget exceeds SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK: "
                f"required={required}, capacity={capacity}. Raise the environment value or lower "
                "--chunked-prefill-size/--max-prefill-tokens.",
                where,
            )
    requests, per_request = _decode_tokens(s)
    if requests * per_request > capacity:
        s.value_error(
            "DeepEP v2 per-rank decode CUDA graph exceeds SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK: "
            f"required={requests * per_request}, capacity={capacity} (requests={requests}, "
            f"tokens/request={per_request}). Raise the environment value or lower --cuda-graph-max-bs-decode.",
            where,
        )


def mega_moe_budget(s: State) -> None:
    """Token budget of MegaMoE where a batch has no other path (mega_moe_hook.py:161)."""
    if s.moe_a2a_backend != "megamoe" or s.encoder_only or s.model is None or s.platform.hip:
        return
    label = s.model.architecture
    fp4 = s.quantization in ("modelopt_fp4", "minimax_m3_nvfp4") or "FP4" in str(s.model.quant.get("quant_algo", ""))
    if label not in _NO_FALLBACK and not fp4:
        return
    where = "arg_groups/mega_moe_hook.py:161"
    capacity = int(s.env.get("SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK", 8192))
    if s.disaggregation_mode != "prefill":
        largest = s.graph("decode")["max_bs"] or 0
        if s.max_running_requests is not None:
            step = max(1, s.tp_size // s.attn_dp_size)
            per_rank = -(-(s.max_running_requests // s.attn_dp_size) // step) * step
            largest = min(largest, per_rank)
        tokens = largest * ((s.speculative_num_draft_tokens or 1) if s.speculative_algorithm else 1)
        if capacity < tokens:
            s.value_error(
                f"{label} with MegaMoE requires SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK to "
                f"cover the largest decode / verify forward on one rank. Current values: largest decode "
                f"graph bucket x tokens per request = {tokens}, "
                f"SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK={capacity}.",
                where,
            )
    if s.disaggregation_mode == "decode" or (s.pp_size > 1 and s.enable_dynamic_chunking):
        return
    if s.chunked_prefill_size is None or s.chunked_prefill_size <= 0:
        s.value_error(f"{label} with MegaMoE requires chunked prefill to be enabled.", where)
    if s.enable_prefill_cp:
        local, align = -(-s.chunked_prefill_size // s.attn_cp_size), 1
    else:
        parts = s.attn_dp_size if attn_dp_enabled(s) else 1
        local, align = s.chunked_prefill_size // parts, max(s.tp_size // parts // s.attn_cp_size, 1)
    if local <= 0:
        s.value_error(f"{label} with MegaMoE requires a positive effective per-rank chunked prefill size.", where)
    required = -(-local // align) * align
    if capacity < required:
        s.value_error(
            f"{label} with MegaMoE requires SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK to cover each rank's "
            f"effective prefill token budget. required_per_rank={required}, capacity={capacity}.",
            where,
        )
