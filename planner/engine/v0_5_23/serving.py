"""Values of the server itself: names, tokenizer, parsers, deprecated spellings (serving_hook.py, hicache_hook.py)."""

from __future__ import annotations

from planner.engine.state import State
from planner.engine.v0_5_23.view import uses_mla

__all__ = [
    "aux_hidden_states",
    "defaults",
    "deprecated",
    "early_checks",
    "encoder_disaggregation",
    "environment",
    "grammar_and_balance",
    "hicache",
    "hicache_ratio",
    "late_checks",
    "ssl_and_requests",
    "tokenizer_batching",
]

_SERVING = "arg_groups/serving_hook.py"
_ENCODER_ARCHITECTURES = frozenset(
    {
        "Dots3NoteForCausalLM",
        "Glm5NextForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "KimiVLForConditionalGeneration",
        "MiMoV2ForCausalLM",
        "MiniMaxM3SparseForConditionalGeneration",
        "MuseSparkForConditionalGeneration",
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


def early_checks(s: State) -> None:
    """Checks before the model is read."""
    mode = s.return_hidden_states_mode
    if mode is None:
        if s.enable_return_hidden_states or s.enable_return_aux_hidden_states:
            s.set("hidden states are returned", f"{_SERVING}:712", return_hidden_states_mode="full")
    elif mode in ("last", "full"):
        s.set("a mode is given", f"{_SERVING}:712", enable_return_hidden_states=True)
    else:
        s.value_error("return_hidden_states_mode must be one of: None, 'last', or 'full'.", f"{_SERVING}:712")


def hicache_ratio(s: State) -> None:
    where = "arg_groups/hicache_hook.py:100"
    fraction = s.hicache_host_memory_fraction
    if fraction is not None and not 0 < fraction <= 1:
        s.value_error("--hicache-host-memory-fraction must be in (0, 1].", where)
    given = s.hicache_ratio is not None
    if not given and s.disaggregation_mode != "decode":
        s.set(
            "default of the host cache",
            where,
            hicache_ratio=1.2 if s.hicache_host_memory_mode == "buffer_only" else 2.0,
        )
    if given or s.hicache_size > 0:
        s.set("an explicit host cache size wins", where, hicache_host_memory_fraction=None)


def early_ranges(s: State) -> None:
    where = "arg_groups/validation_hook.py:657"
    if s.prefill_decode_interval is not None and s.prefill_decode_interval < 0:
        s.value_error("--prefill-decode-interval must be non-negative.", where)
    if s.prefill_decode_interval_min_bs < 0:
        s.value_error("--prefill-decode-interval-min-bs must be non-negative.", where)
    if s.enable_response_store and s.disaggregation_mode != "null":
        s.value_error(
            "--enable-response-store is not supported with --disaggregation-mode=prefill or decode; response storage "
            "must remain disabled in PD mode.",
            "arg_groups/validation_hook.py:109",
        )
    if s.sampling_mask_max_tokens <= 0:
        s.value_error(
            f"--sampling-mask-max-tokens must be positive (got {s.sampling_mask_max_tokens}).",
            "arg_groups/validation_hook.py:678",
        )


def aux_hidden_states(s: State) -> None:
    where = "arg_groups/validation_hook.py:697"
    if not s.enable_return_aux_hidden_states:
        if s.return_aux_hidden_state_layer_ids is not None:
            s.value_error("--return-aux-hidden-state-layer-ids requires --enable-return-aux-hidden-states.", where)
        return
    method = (s.speculative_algorithm or "").upper()
    if method not in ("EAGLE3", "DFLASH", "DSPARK"):
        s.value_error(
            "--enable-return-aux-hidden-states needs --speculative-algorithm EAGLE3, DFLASH or DSPARK to name the "
            f"capture convention, got {s.speculative_algorithm!r}.",
            where,
        )
    if s.speculative_draft_model_path is not None:
        s.value_error(
            "--enable-return-aux-hidden-states captures without a draft; drop --speculative-draft-model-path.", where
        )
    if s.pp_size != 1:
        s.value_error("--enable-return-aux-hidden-states only supports pp_size == 1", where)
    if method != "EAGLE3" and not s.return_aux_hidden_state_layer_ids:
        s.value_error(
            f"--enable-return-aux-hidden-states with {method} requires --return-aux-hidden-state-layer-ids.", where
        )
    s.set("hidden states are captured without drafting", where, speculative_algorithm=None)
    s.set("hidden states are captured without drafting", where, aux_hidden_state_capture=method.lower())


def ssl_and_requests(s: State) -> None:
    where = f"{_SERVING}:47"
    if s.mm_preprocess_cache_size_mb is not None and s.mm_preprocess_cache_size_mb < 0:
        s.value_error("mm_preprocess_cache_size_mb must be non-negative", f"{_SERVING}:138")
    if bool(s.ssl_keyfile) != bool(s.ssl_certfile):
        have, need = ("keyfile", "certfile") if s.ssl_keyfile else ("certfile", "keyfile")
        s.value_error(f"--ssl-{have} requires --ssl-{need} to be specified as well.", where)
    if not s.ssl_certfile and s.ssl_ca_certs:
        s.value_error("--ssl-ca-certs has no effect without --ssl-certfile and --ssl-keyfile.", where)
    if not s.ssl_certfile and s.ssl_keyfile_password:
        s.value_error("--ssl-keyfile-password has no effect without --ssl-certfile and --ssl-keyfile.", where)
    if s.enable_ssl_refresh and not (s.ssl_certfile and s.ssl_keyfile):
        s.value_error("--enable-ssl-refresh requires --ssl-certfile and --ssl-keyfile to be specified.", where)
    if s.enable_http_worker_reuseport and (s.tokenizer_worker_num == 1 or s.enable_http2):
        s.value_error(
            "--enable-http-worker-reuseport requires --tokenizer-worker-num > 1 and has no effect with --enable-http2.",
            where,
        )
    if s.asr_max_buffer_seconds <= 0:
        s.value_error(f"--asr-max-buffer-seconds must be positive (got {s.asr_max_buffer_seconds}).", f"{_SERVING}:123")
    if s.asr_max_concurrent_sessions <= 0:
        s.value_error(
            f"--asr-max-concurrent-sessions must be positive (got {s.asr_max_concurrent_sessions}).", f"{_SERVING}:123"
        )


def deprecated(s: State) -> None:
    """Deprecated spellings become the new ones."""
    where = f"{_SERVING}:256"
    if s.disable_fast_image_processor:
        if s.image_processor_backend not in ("auto", "pil"):
            s.value_error(
                f"--disable-fast-image-processor conflicts with --image-processor-backend={s.image_processor_backend}.",
                where,
            )
        s.set("--disable-fast-image-processor is deprecated", where, image_processor_backend="pil")
    parser = {"qwen25": "qwen", "glm45": "glm"}.get(s.tool_call_parser)
    if parser is not None:
        s.set("renamed parser", where, tool_call_parser=parser)
    if s.enable_flashinfer_allreduce_fusion and s.flashinfer_allreduce_fusion_backend is None:
        s.set(
            "--enable-flashinfer-allreduce-fusion is deprecated and means this",
            where,
            flashinfer_allreduce_fusion_backend="auto",
        )
    s.set("the flag is deprecated: the backend field decides", where, enable_flashinfer_allreduce_fusion=False)
    aliases = {"compressed": "dsv4", "tokenspeed_mla": "cutedsl_mla"}
    alias_decode = "tokenspeed_mla" in (s.attention_backend, s.decode_attention_backend)
    for name in (
        "attention_backend",
        "decode_attention_backend",
        "prefill_attention_backend",
        "speculative_draft_attention_backend",
    ):
        new = aliases.get(s.values[name])
        if new is not None:
            if name == "prefill_attention_backend" and new == "cutedsl_mla":
                new = "trtllm_mla"
            s.set("deprecated name of a backend", where, **{name: new})
    if alias_decode:
        s.set("tokenspeed_mla forces FP8 KV", where, kv_cache_dtype="fp8_e4m3")
        if s.speculative_algorithm is not None and s.speculative_attention_mode == "prefill":
            s.set("tokenspeed_mla verifies on the decode backend", where, speculative_attention_mode="decode")
    if s.grpc_mode and not s.smg_grpc_mode:
        s.set("--grpc-mode is deprecated", where, smg_grpc_mode=True)
    s.set("default of SGLANG_GRPC_WORKER_THREADS", where, grpc_worker_threads=4)
    legacy = s.smg_grpc_mode or s.grpc_mode
    if legacy and s.grpc_port is None:
        s.set("gRPC listens 10000 above the port", where, grpc_port=s.port + 10000)
    if s.grpc_response_timeout_secs <= 0:
        s.value_error("--grpc-response-timeout-secs must be positive", where)
    if s.grpc_port is not None and not 1 <= s.grpc_port <= 65535:
        s.value_error(
            f"--grpc-port / SGLANG_GRPC_PORT ({s.grpc_port}) must be between 1 and 65535",
            where,
        )
    if s.sidecar_args is not None and s.sidecar is None:
        s.value_error("--sidecar-args requires --sidecar.", where)
    if s.sidecar is not None and s.grpc_port is None:
        s.value_error("--sidecar requires --grpc-port or SGLANG_GRPC_PORT.", where)
    if s.grpc_port is not None and not legacy:
        if s.use_ray:
            s.value_error("--grpc-port is not supported with --use-ray", where)
        if s.tokenizer_worker_num > 1:
            s.value_error("Native gRPC does not yet support --tokenizer-worker-num > 1.", where)
        if s.api_key or s.admin_api_key:
            s.value_error("--grpc-port is incompatible with --api-key/--admin-api-key", where)


def defaults(s: State) -> None:
    where = f"{_SERVING}:632"
    if s.tokenizer_path is None:
        s.set("the model's own", where, tokenizer_path=s.model_path)
    if s.served_model_name is None:
        s.set("the model path", where, served_model_name=s.model_path)
    s.set("the machine's", where, device=(s.device or "cuda").split(":")[0])
    if s.mm_process_config is None:
        s.set("default", where, mm_process_config={})
    s.set(
        "whether a draft quantisation was given",
        where,
        _speculative_draft_quantization_explicitly_set=s.speculative_draft_model_quantization is not None,
    )
    if s.speculative_draft_model_quantization is None:
        s.set("the target's", where, speculative_draft_model_quantization=s.quantization)
    s.values["_quantization_explicitly_unset"] = s.quantization == "unquant"
    if s.quantization == "unquant":
        s.set("unquant means none", where, quantization=None)
    if s.speculative_draft_model_quantization == "unquant":
        s.set("unquant means none", where, speculative_draft_model_quantization=None)


def grammar_and_balance(s: State) -> None:
    if s.grammar_backend is None:
        s.set("default", f"{_SERVING}:239", grammar_backend="xgrammar")


def load_balance(s: State) -> None:
    if s.load_balance_method == "auto":
        method = "follow_bootstrap_room" if s.disaggregation_mode == "prefill" else "round_robin"
        s.set("by the disaggregation role", f"{_SERVING}:217", load_balance_method=method)


def hicache(s: State) -> None:
    where = "arg_groups/hicache_hook.py:18"
    if s.enable_linker_mla_dedup and not (
        s.enable_unified_cache_external_linker and s.unified_cache_external_linker_backend == "mooncake"
    ):
        s.value_error("--enable-linker-mla-dedup requires the Mooncake linker.", where)
    if s.enable_unified_cache_external_linker:
        if s.disable_radix_cache or s.radix_cache_backend is not None:
            s.value_error(
                "--enable-unified-cache-external-linker requires the default UnifiedRadixCache with radix caching "
                "enabled.",
                where,
            )
        if s.enable_hierarchical_cache:
            s.value_error(
                "--enable-unified-cache-external-linker and --enable-hierarchical-cache are mutually exclusive.", where
            )
        return
    decode_backup = s.disaggregation_mode == "decode" and s.disaggregation_decode_retraction_backup in (
        None,
        "host_pool",
    )
    if not (s.enable_hierarchical_cache or s.disaggregation_decode_enable_offload_kvcache or decode_backup):
        return
    if s.hicache_host_memory_mode == "buffer_only":
        if s.hicache_storage_backend is None:
            s.value_error("--hicache-host-memory-mode buffer_only requires a storage backend", where)
        if s.hicache_write_policy == "write_back":
            s.set("buffer_only writes through", where, hicache_write_policy="write_through")
        if s.disaggregation_mode == "decode":
            s.value_error("--hicache-host-memory-mode buffer_only is not supported on decode instances", where)
    if s.disaggregation_decode_host_receive_threshold < 1:
        s.set("decode host receive needs it", where, hicache_mem_layout="layer_first")
    if s.hicache_mem_layout == "page_first_direct" and s.hicache_io_backend == "kernel":
        s.set("the layout needs direct I/O", where, hicache_io_backend="direct")
    if s.hicache_mem_layout == "page_first" and s.hicache_io_backend == "direct":
        s.set("direct I/O needs the direct layout", where, hicache_mem_layout="page_first_direct")
    sharded = s.hicache_storage_backend == "mooncake" and s.dcp_size > 1
    paged = s.hicache_storage_backend in ("mooncake", "npu_memcache")
    if paged and not sharded and s.hicache_mem_layout == "layer_first":
        layout = {"direct": "page_first_direct", "kernel": "page_first"}.get(s.hicache_io_backend)
        if layout:
            s.set("the storage backend needs pages", where, hicache_mem_layout=layout)
    _hicache_with_dcp(s)


def _hicache_with_dcp(s: State) -> None:
    where = "arg_groups/hicache_hook.py:129"
    if s.dcp_size <= 1 or not s.enable_hierarchical_cache:
        return
    kind = "NotImplementedError"
    if s.hicache_storage_backend is not None and s.hicache_host_memory_mode == "buffer_only":
        s.refuse(kind, "HiCache L3 with DCP does not support buffer_only host memory.", where)
    if s.speculative_algorithm not in (None, "DSPARK"):
        s.refuse(
            kind,
            "HiCache with --dcp-size > 1 only supports DSPARK speculative decoding; other draft-model host pools have "
            "no DCP index translation.",
            where,
        )
    if s.enable_lmcache:
        s.refuse(kind, "--enable-lmcache with --dcp-size > 1 is not supported", where)
    if s.enable_hisparse:
        s.refuse(kind, "--enable-hisparse with --dcp-size > 1 is not supported", where)
    if not uses_mla(s):
        s.refuse(
            kind,
            "HiCache with --dcp-size > 1 is only supported for MLA models: the index translation lives in "
            "MLATokenToKVPoolHost, and the MHA host pool has none.",
            where,
        )


def environment(s: State) -> None:
    where = f"{_SERVING}:800"
    transport = s.mm_feature_transport
    if transport is None:
        transport = "cpu"
    if s.encoder_only and transport in ("cuda_ipc", "cuda_vmm"):
        transport = "cpu"
    if transport == "cuda_vmm" and s.pp_size != 1:
        s.value_error("--mm-feature-transport=cuda_vmm does not support pipeline parallelism.", where)
    if transport == "cuda_ipc" and s.nnodes != 1:
        s.value_error("--mm-feature-transport=cuda_ipc only supports a single node.", where)
    s.set("default", where, mm_feature_transport=transport)
    if s.enable_deepseek_v4_fp4_indexer and not (s.platform.sm100 or s.platform.sm120):
        s.value_error(
            "--enable-deepseek-v4-fp4-indexer requires SM100, SM120, or gfx95 GPUs with FP4 indexer support.",
            f"{_SERVING}:435",
        )


def encoder_disaggregation(s: State) -> None:
    where = "arg_groups/pd_disaggregation_hook.py:298"
    architecture = s.model.architecture if s.model else ""
    if s.language_model_only:
        s.value_error(f"--language-model-only does not support {[architecture]}.", "arg_groups/model_hook.py:1079")
    if s.enable_prefix_mm_cache and not s.encoder_only:
        s.value_error("--enable-prefix-mm-cache requires --encoder-only to be enabled", where)
    if s.encoder_only and s.language_only:
        s.value_error("Cannot set --encoder-only and --language-only together", where)
    if s.encoder_only and s.disaggregation_mode != "null":
        s.value_error("Cannot set --encoder-only and --disaggregation-mode prefill/decode together", where)
    if s.encoder_transfer_backend == "auto":
        kimi_k3 = architecture == "KimiK3ForConditionalGeneration" and s.tp_size > 1
        s.set(
            "by model and tensor parallelism",
            where,
            encoder_transfer_backend="zmq_to_tokenizer" if kimi_k3 else "zmq_to_scheduler",
        )
    if (s.encoder_only or s.language_only) and s.model and architecture not in _ENCODER_ARCHITECTURES:
        s.value_error(f"Model type {architecture} is not supported for encoder disaggregation.", where)


def tokenizer_batching(s: State) -> None:
    where = f"{_SERVING}:754"
    if s.enable_tokenizer_batch_encode and s.enable_dynamic_batch_tokenizer:
        s.value_error("Cannot enable both --enable-tokenizer-batch-encode and --enable-dynamic-batch-tokenizer.", where)
    if s.skip_tokenizer_init:
        s.set("no tokenizer", where, detokenizer_worker_num=1)
        s.set("no tokenizer", where, enable_tokenizer_batch_encode=False, enable_dynamic_batch_tokenizer=False)


def late_checks(s: State) -> None:
    """Optimistic prefill and the debug dumps."""
    where = f"{_SERVING}:496"
    if s.optimistic_prefill_attempts > 0 and s.disaggregation_mode == "prefill" and s.pp_size > 1:
        s.set("not with pipeline parallelism", where, optimistic_prefill_attempts=0)
    if s.debug_tensor_dump_output_folder is not None or s.msprobe_dump_config is not None:
        for phase in ("decode", "prefill"):
            s.set_graph("tensor dumps need eager steps", where, phase, backend="disabled")
        s.set("tensor dumps skip the warmup", where, skip_server_warmup=True)
    if s.debug_cuda_graph:
        s.notes.append("--debug-cuda-graph replays graphs eagerly (SGLANG_USE_BREAKABLE_CUDA_GRAPH=1)")
