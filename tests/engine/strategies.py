"""Hypothesis strategies for launches: argv as a person would write it, over machines, models, algorithms and knobs."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

CHECKPOINTS = Path(__file__).with_name("checkpoints")
MACHINES = ("b300", "rtx_pro_6000", "h200")
TARGETS = (
    "kimi-int4",
    "kimi-nvfp4",
    "kimi-k2-int4",
    "deepseek-fp8",
    "deepseek-dsa",
    "qwen3-dense",
    "qwen3-dense-fp8",
    "qwen3-moe",
    "qwen3-moe-fp8",
    "llama",
    "llama-awq",
    "gpt-oss",
    "glm4-moe",
)
"""Kimi, DeepSeek, Qwen dense and MoE, Llama, GPT-OSS and GLM shapes."""
OTHER_TARGETS = (
    "deepseek-bf16",
    "deepseek-nvfp4",
    "deepseek-v2",
    "gemma3",
    "glm-dsa",
    "llama4",
    "minimax-m2",
    "mixtral",
    "olmo2",
    "qwen25-vl",
    "qwen3-moe-nvfp4",
    "qwen3-next",
    "step35",
)
"""Further architectures with defaults of their own."""
ATTENTION = (
    "triton",
    "flashinfer",
    "fa3",
    "fa4",
    "trtllm_mla",
    "trtllm_mha",
    "flashmla",
    "cutlass_mla",
    "cutedsl_mla",
    "tokenspeed_mla",
    "torch_native",
    "flex_attention",
)
MOE_RUNNERS = (
    "auto",
    "triton",
    "deep_gemm",
    "flashinfer_trtllm",
    "flashinfer_cutlass",
    "flashinfer_cutedsl",
    "flashinfer_mxfp4",
    "cutlass",
    "triton_kernel",
    "flashinfer_trtllm_routed",
)
A2A = ("none", "deepep", "mooncake", "nixl", "flashinfer", "mori", "megamoe", "deepep_v2", "pplx")


def folder(name: str) -> str:
    """Path of a checkpoint folder that holds only config.json."""
    return str(CHECKPOINTS / name)


def _flag(name: str, values: st.SearchStrategy[object]) -> st.SearchStrategy[list[str]]:
    return values.map(lambda value: [name, str(value)])


def _switch(name: str) -> st.SearchStrategy[list[str]]:
    return st.just([name])


def _speculation(version: str) -> st.SearchStrategy[list[str]]:
    """One algorithm with its own flags; some combinations are wrong on purpose."""
    draft = st.sampled_from(["draft-dflash", "draft-dflash-sliding", "draft-eagle3", "draft-small"])

    @st.composite
    def build(draw: st.DrawFn) -> list[str]:
        names = ["DFLASH", "DFLASH", "EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "dflash", "DDTREE"]
        if version == "0.5.23":
            names += ["DSPARK", "UNO"]
        name = draw(st.sampled_from(names))
        argv = ["--speculative-algorithm", name]
        if draw(st.integers(0, 9)) and name not in ("NGRAM", "UNO"):
            argv += ["--speculative-draft-model-path", folder(draw(draft))]
        numbers = {
            "--speculative-num-steps": st.integers(1, 7),
            "--speculative-eagle-topk": st.sampled_from([1, 1, 1, 2, 4, 8]),
            "--speculative-num-draft-tokens": st.sampled_from([2, 4, 5, 8, 9, 16, 17]),
        }
        if name.upper() in ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "UNO"):
            chosen = (
                list(numbers)
                if draw(st.integers(0, 3))
                else draw(st.lists(st.sampled_from(list(numbers)), unique=True))
            )
        else:
            chosen = draw(st.lists(st.sampled_from(list(numbers)), max_size=2, unique=True))
        for flag in chosen:
            argv += [flag, str(draw(numbers[flag]))]
        extra = [
            _flag("--speculative-dflash-block-size", st.sampled_from([4, 8, 16])),
            _flag(
                "--speculative-draft-attention-backend",
                st.sampled_from(["triton", "flashinfer", "fa3", "fa4", "trtllm_mha", "trtllm_mla"]),
            ),
            _flag("--speculative-draft-window-size", st.sampled_from([4, 512, 4096])),
            _flag("--speculative-attention-mode", st.sampled_from(["prefill", "decode"])),
            _flag("--speculative-moe-runner-backend", st.sampled_from(["auto", "triton", "flashinfer_trtllm"])),
            _flag("--speculative-moe-a2a-backend", st.sampled_from(["none", "deepep"])),
            _flag("--speculative-accept-threshold-single", st.sampled_from([0.9, 1.0])),
            _flag("--speculative-draft-model-quantization", st.sampled_from(["unquant", "fp8"])),
            _switch("--speculative-adaptive"),
            _switch("--enable-multi-layer-eagle"),
        ]
        if version == "0.5.23":
            extra += [
                _switch("--speculative-use-rejection-sampling"),
                _switch("--speculative-use-block-verification"),
                _flag("--speculative-dspark-block-size", st.sampled_from([4, 7])),
                _flag("--speculative-draft-kv-cache-dtype", st.sampled_from(["auto", "fp8_e4m3", "bf16"])),
                _flag("--speculative-ngram-max-bfs-breadth", st.sampled_from([1, 4])),
            ]
        for part in draw(st.lists(st.sampled_from(range(len(extra))), max_size=2, unique=True)):
            argv += draw(extra[part])
        return argv

    return build()


def _knobs(version: str) -> list[st.SearchStrategy[list[str]]]:
    """Everything else, one strategy a flag."""
    decode_bs = "--cuda-graph-max-bs-decode" if version == "0.5.23" else "--cuda-graph-max-bs"
    decode_list = "--cuda-graph-bs-decode" if version == "0.5.23" else "--cuda-graph-bs"
    knobs = [
        _flag("--max-running-requests", st.sampled_from([1, 8, 48, 64, 128, 256, 1024])),
        _flag("--max-running-requests", st.integers(1, 600)),
        _flag(decode_bs, st.sampled_from([1, 8, 24, 64, 128, 256, 512])),
        st.lists(st.integers(1, 200), min_size=1, max_size=4, unique=True).map(
            lambda sizes: [decode_list, *map(str, sorted(sizes))]
        ),
        _switch("--disable-cuda-graph"),
        _switch("--disable-cuda-graph-padding"),
        _flag("--attention-backend", st.sampled_from(ATTENTION)),
        _flag("--attention-backend", st.sampled_from(ATTENTION[:6])),
        _flag("--decode-attention-backend", st.sampled_from(ATTENTION[:9])),
        _flag("--prefill-attention-backend", st.sampled_from(ATTENTION[:9])),
        _flag("--page-size", st.sampled_from([1, 16, 32, 64, 128, 256])),
        _flag("--kv-cache-dtype", st.sampled_from(["auto", "bf16", "fp8_e4m3", "fp8_e5m2"])),
        _flag("--mem-fraction-static", st.sampled_from([0.7, 0.85, 0.9])),
        _flag("--chunked-prefill-size", st.sampled_from([-1, 512, 1000, 2048, 8192, 32768])),
        _flag("--max-prefill-tokens", st.sampled_from([4096, 16384])),
        _flag("--max-total-tokens", st.sampled_from([4096, 200000])),
        _flag("--context-length", st.sampled_from([4096, 32768, 131072, 400000])),
        _flag("--ep-size", st.sampled_from([1, 2, 3, 4, 8])),
        _flag("--moe-runner-backend", st.sampled_from(MOE_RUNNERS)),
        _flag("--moe-a2a-backend", st.sampled_from(A2A if version == "0.5.23" else A2A[:6])),
        _flag("--deepep-mode", st.sampled_from(["auto", "normal", "low_latency"])),
        _flag("--moe-dense-tp-size", st.sampled_from([1, 2])),
        _flag("--pp-size", st.sampled_from([1, 2])),
        _flag("--nnodes", st.sampled_from([1, 2, 3])),
        st.sampled_from([2, 4, 8]).map(lambda size: ["--dp-size", str(size), "--enable-dp-attention"]),
        st.sampled_from([2, 8]).map(
            lambda size: ["--dp-size", str(size), "--enable-dp-attention", "--enable-dp-lm-head"]
        ),
        _flag("--dp-size", st.sampled_from([2])),
        _switch("--enable-mixed-chunk"),
        _switch("--disable-overlap-schedule"),
        _switch("--disable-radix-cache"),
        _switch("--enable-hierarchical-cache"),
        _switch("--enable-deterministic-inference"),
        _switch("--enable-two-batch-overlap"),
        _switch("--enable-torch-compile"),
        _switch("--disable-shared-experts-fusion"),
        _switch("--enable-flashinfer-allreduce-fusion"),
        _switch("--enforce-disable-flashinfer-allreduce-fusion"),
        _switch("--enable-nccl-nvls"),
        _switch("--enable-symm-mem"),
        _switch("--disable-custom-all-reduce"),
        _switch("--enable-eplb"),
        _switch("--language-only"),
        _flag("--disaggregation-mode", st.sampled_from(["prefill", "decode"])),
        _switch("--disaggregation-decode-enable-radix-cache"),
        _flag("--quantization", st.sampled_from(["fp8", "modelopt_fp4", "compressed-tensors", "awq", "w8a8_fp8"])),
        _flag("--sampling-backend", st.sampled_from(["pytorch", "flashinfer"])),
        _flag("--grammar-backend", st.sampled_from(["none", "outlines"])),
        _flag("--served-model-name", st.sampled_from(["kimi", "a:b"])),
        _flag("--schedule-policy", st.sampled_from(["lpm", "fcfs"])),
        _flag("--dtype", st.sampled_from(["bfloat16", "half"])),
    ]
    if version == "0.5.23":
        knobs += [
            _flag("--cuda-graph-backend-decode", st.sampled_from(["full", "breakable", "disabled"])),
            _flag("--cuda-graph-backend-prefill", st.sampled_from(["full", "breakable", "disabled"])),
            _flag("--cuda-graph-max-bs-prefill", st.sampled_from([512, 4096])),
            _switch("--disable-prefill-cuda-graph"),
            _switch("--disable-decode-cuda-graph"),
            st.sampled_from(
                ['{"decode": {"max_bs": 32}}', '{"prefill": {"backend": "disabled"}, "decode": {"bs": [1, 2, 4]}}']
            ).map(lambda text: ["--cuda-graph-config", text]),
            _flag("--flashinfer-allreduce-fusion-backend", st.sampled_from(["auto", "trtllm"])),
            _flag("--attn-dp-size", st.sampled_from([2, 4, 8])),
            _flag("--attn-cp-size", st.sampled_from([2, 4])),
            _flag("--moe-dp-size", st.sampled_from([2, 4])),
            _flag("--dcp-size", st.sampled_from([2])),
            _flag("--kv-cache-dtype", st.sampled_from(["nvfp4", "fp4_mx_block16", "mxfp8", "bfloat16"])),
            _flag("--disaggregation-transfer-backend", st.sampled_from(["nixl", "mooncake"])),
            _flag("--tool-call-parser", st.sampled_from(["qwen25", "kimi_k2"])),
        ]
    return knobs


@st.composite
def launches(draw: st.DrawFn, version: str) -> tuple[str, list[str]]:
    """Machine and argv of one launch for the version, wrong ones included: the engine's refusals are compared too."""
    machine = draw(st.sampled_from(MACHINES))
    target = draw(st.sampled_from(TARGETS + OTHER_TARGETS if draw(st.booleans()) else TARGETS))
    argv = ["--model-path", folder(target), "--trust-remote-code"]
    argv += ["--tp-size", str(draw(st.sampled_from([1, 2, 4, 8, 8, 8])))]
    if draw(st.booleans()):
        argv += draw(_speculation(version))
    knobs = _knobs(version)
    for index in draw(st.lists(st.integers(0, len(knobs) - 1), max_size=6, unique=True)):
        argv += draw(knobs[index])
    return machine, argv
