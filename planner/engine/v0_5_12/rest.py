"""Serving, disaggregation, parallelism and MoE of 0.5.12.post1."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_12.view import attention_backends

__all__ = [
    "a2a",
    "cache_compatibility",
    "context_parallelism",
    "data_parallelism",
    "debug_dumps",
    "deprecated",
    "encoder_disaggregation",
    "experts",
    "load_balance",
    "missing_defaults",
    "moe_kernel",
    "pd_disaggregation",
    "prefill_only",
    "prefill_only_backend",
    "ssl",
    "tokenizer_batching",
]

_ENCODER = frozenset(
    {
        "InternS2PreviewForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "KimiVLForConditionalGeneration",
        "Qwen2AudioForConditionalGeneration",
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5OmniForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3OmniMoeForConditionalGeneration",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
    }
)


def load_balance(s: State) -> None:
    if s.load_balance_method == "auto":
        method = "follow_bootstrap_room" if s.disaggregation_mode == "prefill" else "round_robin"
        s.set("by the disaggregation role", "server_args.py:1195", load_balance_method=method)


def pd_disaggregation(s: State) -> None:
    where = "server_args.py:4040"
    if s.disaggregation_mode == "decode":
        if s.disaggregation_decode_enable_radix_cache:
            if s.disaggregation_transfer_backend not in ("nixl", "mooncake"):
                s.value_error(
                    "--disaggregation-decode-enable-radix-cache currently requires --disaggregation-transfer-backend "
                    f"in ('nixl', 'mooncake'), but got {s.disaggregation_transfer_backend!r}",
                    where,
                )
            if s.speculative_algorithm is not None:
                s.value_error(
                    "--disaggregation-decode-enable-radix-cache is incompatible with speculative decoding "
                    f"(--speculative-algorithm {s.speculative_algorithm})",
                    "server_args.py:4058",
                )
            s.set("--disaggregation-decode-enable-radix-cache", where, disable_radix_cache=False)
        else:
            s.set("a decode server keeps no radix cache", where, disable_radix_cache=True)
            if s.mamba_scheduler_strategy == "extra_buffer":
                s.set("a decode server keeps no radix cache", where, mamba_scheduler_strategy="no_buffer")
    elif s.disaggregation_mode == "prefill":
        s.require(
            s.disaggregation_transfer_backend != "fake",
            "Prefill server does not support 'fake' as the transfer backend",
            where,
        )
        if s.disable_piecewise_cuda_graph:
            s.set("a prefill server without prefill graphs", where, disable_cuda_graph=True)


def ssl(s: State) -> None:
    where = "server_args.py:1205"
    complete = s.ssl_certfile and s.ssl_keyfile
    if bool(s.ssl_keyfile) != bool(s.ssl_certfile):
        have, need = ("keyfile", "certfile") if s.ssl_keyfile else ("certfile", "keyfile")
        s.value_error(f"--ssl-{have} requires --ssl-{need} to be specified as well.", where)
    if not complete and s.ssl_ca_certs:
        s.value_error("--ssl-ca-certs has no effect without --ssl-certfile and --ssl-keyfile.", where)
    if not complete and s.ssl_keyfile_password:
        s.value_error("--ssl-keyfile-password has no effect without --ssl-certfile and --ssl-keyfile.", where)
    if s.enable_ssl_refresh and not complete:
        s.value_error("--enable-ssl-refresh requires --ssl-certfile and --ssl-keyfile to be specified.", where)


def prefill_only(s: State) -> None:
    if not s.prefill_only_disable_kv_cache:
        return
    where = "server_args.py:3300"
    name = "--prefill-only-disable-kv-cache"
    for wrong, text in (
        (not s.is_embedding, f"{name} currently requires --is-embedding."),
        (s.kv_cache_dtype == "fp4_e2m1", f"{name} does not currently support --kv-cache-dtype=fp4_e2m1"),
        (s.chunked_prefill_size != -1, f"{name} requires --chunked-prefill-size=-1"),
        (not s.disable_radix_cache, f"{name} requires --disable-radix-cache"),
        (s.attn_cp_size > 1, f"{name} is incompatible with --attn-cp-size > 1"),
    ):
        if wrong:
            s.value_error(text, where)


def prefill_only_backend(s: State) -> None:
    prefill = attention_backends(s)[0]
    if s.prefill_only_disable_kv_cache and prefill not in ("fa3", "fa4"):
        s.value_error(
            "--prefill-only-disable-kv-cache currently requires the FA prefill backend (fa3/fa4), but got prefill "
            f"backend {prefill!r}.",
            "server_args.py:3350",
        )


def deprecated(s: State) -> None:
    where = "server_args.py:1240"
    parser = {"qwen25": "qwen", "glm45": "glm"}.get(s.tool_call_parser)
    if parser is not None:
        s.set("renamed parser", where, tool_call_parser=parser)
    for name in (
        "attention_backend",
        "decode_attention_backend",
        "prefill_attention_backend",
        "speculative_draft_attention_backend",
    ):
        if s.values[name] == "compressed":
            s.set("deprecated name of a backend", where, **{name: "dsv4"})
    if not 1 <= s.port + 10000 <= 65535 and "SGLANG_GRPC_PORT" not in s.env:
        s.value_error(f"SGLANG_GRPC_PORT ({s.port + 10000}) must be between 1 and 65535", where)


def missing_defaults(s: State) -> None:
    where = "server_args.py:1270"
    s.values["_quantization_explicitly_unset"] = s.quantization == "unquant"
    if s.quantization == "unquant":
        s.set("unquant means none", where, quantization=None)
    if s.tokenizer_path is None:
        s.set("the model's own", where, tokenizer_path=s.model_path)
    if s.served_model_name is None:
        s.set("the model path", where, served_model_name=s.model_path)
    s.set("the machine's", where, device=(s.device or "cuda").split(":")[0])
    if s.mm_process_config is None:
        s.set("default", where, mm_process_config={})
    if s.mamba_scheduler_strategy == "auto":
        s.set("default", where, mamba_scheduler_strategy="no_buffer")
    if s.speculative_draft_model_quantization is None:
        s.set("the target's", where, speculative_draft_model_quantization=s.quantization)
    elif s.speculative_draft_model_quantization == "unquant":
        s.set("unquant means none", where, speculative_draft_model_quantization=None)


def data_parallelism(s: State) -> None:
    where = "server_args.py:2990"
    if s.dp_size == 1:
        s.set("no data parallelism", where, enable_dp_attention=False, enable_dp_lm_head=False)
    if s.enable_dp_attention:
        s.set("attention DP", where, schedule_conservativeness=s.schedule_conservativeness * 0.3)
        s.require(s.tp_size % s.dp_size == 0, "", where)
        s.set("divided by the attention-DP size", where, chunked_prefill_size=s.chunked_prefill_size // s.dp_size)
    if s.enable_dp_lm_head:
        s.require(bool(s.enable_dp_attention), "Please enable dp attention when setting enable_dp_lm_head. ", where)


def context_parallelism(s: State) -> None:
    where = "server_args.py:2960"
    if s.attn_cp_size > 1:
        s.require(s.tp_size % s.attn_cp_size == 0, "tp_size must be divisible by attn_cp_size", where)
        s.require(
            s.tp_size % (s.dp_size * s.attn_cp_size) == 0,
            "tp_size must be divisible by dp_size * attn_cp_size",
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
    if s.attn_cp_size != s.moe_dp_size:
        s.require(s.moe_dp_size == 1, "attn_cp_size != moe_dp_size is only supported when moe_dp_size == 1", where)


def moe_kernel(s: State) -> None:
    where = "server_args.py:3030"
    if s.quantization == "mxfp8" and s.moe_runner_backend not in (
        "cutlass",
        "flashinfer_trtllm",
        "flashinfer_trtllm_routed",
    ):
        s.set("runner for mxfp8", where, moe_runner_backend="flashinfer_trtllm")
    runner, quantization = s.moe_runner_backend, s.quantization
    ep_text = "The expert parallel size must be 1 or the same as the tensor parallel size"
    if runner == "flashinfer_cutlass":
        s.require(
            quantization in ("modelopt_fp4", "modelopt_fp8", "modelopt_mixed", None),
            f"Invalid quantization '{quantization}'. \nFlashInfer Cutlass MOE supports only: 'modelopt_fp4', "
            "'modelopt_fp8', 'modelopt_mixed', or bfloat16 (None).",
            where,
        )
        s.require(s.ep_size in (1, s.tp_size), ep_text, where)
    if runner == "flashinfer_cutedsl":
        s.require(
            quantization == "modelopt_fp4",
            f"Invalid quantization '{quantization}'. \nFlashInfer CuteDSL MOE currently supports only: 'modelopt_fp4'.",
            where,
        )
        s.require(s.ep_size in (1, s.tp_size), ep_text, where)
        s.require(
            s.moe_a2a_backend in ("none", "deepep"),
            "flashinfer_cutedsl supports moe_a2a_backend='none' (standard path) or 'deepep' (DeepEP low-latency "
            f"path), got '{s.moe_a2a_backend}'.",
            where,
        )
    if runner == "flashinfer_trtllm":
        s.require(
            quantization
            in ("modelopt_fp4", "fp8", "mxfp8", "modelopt_fp8", "modelopt_mixed", "compressed-tensors", None),
            f"Invalid quantization '{quantization}'. \nFlashInfer TRTLLM MOE supports only: 'modelopt_fp4', 'fp8', "
            "'modelopt_fp8', 'modelopt_mixed', 'compressed-tensors', or bfloat16 (None).",
            where,
        )
    if runner == "flashinfer_trtllm_routed":
        s.require(
            quantization in ("fp8", "mxfp8", "modelopt_fp4", None),
            f"Invalid quantization '{quantization}'. \nFlashInfer TRTLLM routed MOE supports only: 'fp8', 'mxfp8', "
            "'modelopt_fp4', or bfloat16 (None).",
            where,
        )
    if runner in ("flashinfer_cutedsl", "flashinfer_trtllm", "flashinfer_trtllm_routed"):
        s.set(f"not with the runner {runner}", where, disable_shared_experts_fusion=True)
    if s.flag("SGLANG_CUTLASS_MOE"):
        s.require(quantization in ("fp8", "mxfp8"), "cutlass MoE is only supported with fp8/mxfp8 quantization", where)
        s.set("SGLANG_CUTLASS_MOE", where, moe_runner_backend="cutlass")
    if s.moe_runner_backend == "cutlass" and quantization in ("fp8", "mxfp8"):
        s.require(s.ep_size == 1, "FP8/MXFP8 Cutlass MoE is only supported with ep_size == 1", where)
    gpt_oss = s.model is not None and s.model.architecture == "GptOssForCausalLM"
    if not s.enforce_piecewise_cuda_graph and runner in ("flashinfer_trtllm", "flashinfer_mxfp4") and not gpt_oss:
        s.set(f"prefill graphs are off with {runner}", where, disable_piecewise_cuda_graph=True)


def a2a(s: State) -> None:
    where = "server_args.py:3110"
    if s.enable_deepep_waterfill and s.moe_a2a_backend != "deepep":
        s.set("--enable-deepep-waterfill needs it", where, moe_a2a_backend="deepep")
    if s.flag("SGLANG_OPT_USE_DEEPGEMM_MEGA_MOE") and s.moe_a2a_backend != "megamoe":
        s.set("SGLANG_OPT_USE_DEEPGEMM_MEGA_MOE", where, moe_a2a_backend="megamoe")
    backend = s.moe_a2a_backend
    if backend == "deepep" and s.deepep_mode == "normal":
        s.set("DeepEP normal mode has no graphs", where, disable_cuda_graph=True)
    if backend in ("megamoe", "deepep", "mooncake", "nixl", "ascend_fuseep", "flashinfer", "mori"):
        s.set(f"{backend} spans the tensor-parallel group", where, ep_size=s.tp_size)
    if backend == "deepep" and s.enable_deepep_waterfill:
        s.set("waterfill fuses shared experts", where, disable_shared_experts_fusion=False)
        s.set("waterfill fuses shared experts", where, enforce_shared_experts_fusion=True)
    if backend == "flashinfer":
        s.set("not with flashinfer", where, disable_shared_experts_fusion=True)
        s.require(
            s.moe_runner_backend == "flashinfer_cutlass",
            "Flashinfer MoE A2A is only supported with flashinfer_cutlass moe runner backend",
            where,
        )
    if backend == "mori":
        if s.deepep_mode == "auto":
            s.set("MoRI", where, deepep_mode="normal")
        if s.chunked_prefill_size > 0 and s.disaggregation_mode != "decode":
            s.require(
                s.chunked_prefill_size <= int(s.env.get("SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 4096)),
                "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK (default 4096) must be larger or equal to "
                "chunked_prefill_size",
                where,
            )


def experts(s: State) -> None:
    """Expert balancing and elastic expert parallelism."""
    where = "server_args.py:3220"
    if s.enable_eplb and s.expert_distribution_recorder_mode is None:
        s.set("EPLB", where, expert_distribution_recorder_mode="stat")
    if (s.enable_eplb or s.init_expert_location != "trivial") and s.ep_dispatch_algorithm is None:
        s.set("expert placement", where, ep_dispatch_algorithm="static")
    if s.enable_eplb:
        s.require(s.ep_size > 1, "", where)
    if s.enable_expert_distribution_metrics and s.expert_distribution_recorder_mode is None:
        s.set("the metrics need it", where, expert_distribution_recorder_mode="stat")
    if s.expert_distribution_recorder_buffer_size is None:
        if s.eplb_rebalance_num_iterations is not None:
            s.set(
                "as many as EPLB iterations",
                where,
                expert_distribution_recorder_buffer_size=s.eplb_rebalance_num_iterations,
            )
        elif s.expert_distribution_recorder_mode is not None:
            s.set("default", where, expert_distribution_recorder_buffer_size=1000)
    if s.elastic_ep_backend is not None:
        if s.enable_eplb and s.eplb_algorithm == "auto":
            s.set("elastic expert parallelism", where, eplb_algorithm="elasticity_aware")
        s.require(s.pp_size == 1, "PP size should be set to 1 under elastic EP", where)
    elif s.elastic_ep_rejoin:
        s.refuse("AssertionError", "Elastic EP rejoin requires elastic_ep_backend to be set.", where)


def encoder_disaggregation(s: State) -> None:
    where = "server_args.py:4090"
    if s.enable_prefix_mm_cache and not s.encoder_only:
        s.value_error("--enable-prefix-mm-cache requires --encoder-only to be enabled", where)
    if s.encoder_only and s.language_only:
        s.value_error("Cannot set --encoder-only and --language-only together", where)
    if s.encoder_only and s.disaggregation_mode != "null":
        s.value_error("Cannot set --encoder-only and --disaggregation-mode prefill/decode together", where)
    if s.language_only and not s.encoder_urls:
        s.value_error("requires at least one encoder urls to be set via --encoder-urls", where)
    if (s.encoder_only or s.language_only) and s.model is not None and s.model.architecture not in _ENCODER:
        s.value_error(
            f"Model type {s.model.architecture} is not supported for encoder disaggregation, only Qwen models are "
            "supported for now.",
            where,
        )


def tokenizer_batching(s: State) -> None:
    where = "server_args.py:4150"
    if s.enable_tokenizer_batch_encode and s.enable_dynamic_batch_tokenizer:
        s.value_error("Cannot enable both --enable-tokenizer-batch-encode and --enable-dynamic-batch-tokenizer.", where)
    if s.skip_tokenizer_init:
        s.set(
            "no tokenizer",
            where,
            tokenizer_worker_num=1,
            detokenizer_worker_num=1,
            enable_tokenizer_batch_encode=False,
            enable_dynamic_batch_tokenizer=False,
        )


def cache_compatibility(s: State) -> None:
    where = "server_args.py:4180"
    if s.enable_hierarchical_cache and s.disable_radix_cache:
        s.value_error(
            "The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be "
            "used at the same time. Please use only one of them.",
            where,
        )
    if s.disaggregation_decode_enable_offload_kvcache:
        if s.disaggregation_mode != "decode":
            s.value_error(
                "The argument disaggregation-decode-enable-offload-kvcache is only supported for decode side.", where
            )
        if s.hicache_storage_backend is None:
            s.value_error(
                "The argument disaggregation-decode-enable-offload-kvcache is only supported when "
                "hicache-storage-backend is provided.",
                where,
            )
    if not 0 < s.swa_full_tokens_ratio <= 1.0:
        s.value_error("--swa-full-tokens-ratio should be in range (0, 1.0].", where)


def debug_dumps(s: State) -> None:
    if s.debug_tensor_dump_output_folder is not None or s.msprobe_dump_config is not None:
        s.set("tensor dumps need eager steps", "server_args.py:4340", disable_cuda_graph=True, skip_server_warmup=True)
