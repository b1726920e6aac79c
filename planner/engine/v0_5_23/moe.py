"""Mixture of experts: the runner and what it can do (moe_hook.py:70, overrides.py:1449)."""

from __future__ import annotations

from planner.engine.state import State

__all__ = ["kernel_config", "mega_moe"]

_HOOK = "arg_groups/moe_hook.py"
_OVERRIDES = "arg_groups/overrides.py"
_MXFP8_RUNNERS = ("cutlass", "deep_gemm", "flashinfer_megamoe", "flashinfer_trtllm", "flashinfer_trtllm_routed")


def mega_moe(s: State) -> None:
    """Runner ``megamoe`` is an alias; the backend has its own requirements."""
    where = "arg_groups/mega_moe_hook.py:259"
    if s.moe_runner_backend == "megamoe":
        s.set(
            "the runner megamoe is the all-to-all backend", where, moe_runner_backend="auto", moe_a2a_backend="megamoe"
        )
    if s.moe_a2a_backend != "megamoe":
        return
    where = "arg_groups/mega_moe_hook.py:27"
    if s.enable_two_batch_overlap or s.enable_single_batch_overlap:
        s.value_error(
            "--moe-a2a-backend megamoe has no two-batch / single-batch overlap decomposition; disable "
            "--enable-two-batch-overlap and --enable-single-batch-overlap.",
            where,
        )
    if not (s.platform.sm90 or s.platform.sm100 or s.platform.hip):
        s.value_error(
            "--moe-a2a-backend megamoe needs a CUDA SM90 GPU (block-FP8 experts) or an SM100-class GPU (MXFP4 / NVFP4 "
            "experts); it runs DeepGEMM kernels over CUDA symmetric memory. On ROCm, set "
            "SGLANG_AMD_USE_FLYDSL_MEGA_MOE=1 to select aiter MegaMoEv2 instead.",
            where,
        )


def kernel_config(s: State) -> None:
    _runner_by_quantization(s)
    runner, quantization = s.moe_runner_backend, s.quantization
    where = f"{_HOOK}:70"
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
            quantization in ("modelopt_fp4", "modelopt_mixed", "nvfp4_online"),
            f"Invalid quantization '{quantization}'. \nFlashInfer CuteDSL MOE currently supports only: "
            "'modelopt_fp4', 'modelopt_mixed' (with NVFP4 MoE layers), 'nvfp4_online', or hybrid NVFP4 models.",
            where,
        )
        s.require(s.ep_size in (1, s.tp_size), ep_text, where)
        s.require(
            s.moe_a2a_backend in ("none", "deepep", "flashinfer"),
            "flashinfer_cutedsl supports moe_a2a_backend='none', 'deepep', or 'flashinfer', got "
            f"'{s.moe_a2a_backend}'.",
            where,
        )
        if s.moe_a2a_backend == "deepep" and quantization == "nvfp4_online":
            s.value_error(
                "flashinfer_cutedsl per-token NVFP4 activation requires moe_a2a_backend='none' or 'flashinfer'.", where
            )
    if runner in ("flashinfer_trtllm", "experimental_sgl_trtllm"):
        s.require(
            quantization
            in (
                "modelopt_fp4",
                "nvfp4_online",
                "fp8",
                "mxfp8",
                "modelopt_fp8",
                "modelopt_mixed",
                "compressed-tensors",
                None,
            ),
            f"Invalid quantization '{quantization}'. \nFlashInfer TRTLLM MOE supports only: 'modelopt_fp4', "
            "'nvfp4_online', 'fp8', 'modelopt_fp8', 'modelopt_mixed', 'compressed-tensors', or bfloat16 (None).",
            where,
        )
    if runner == "flashinfer_trtllm_routed":
        s.require(
            quantization
            in ("fp8", "mxfp8", "modelopt_fp4", "modelopt_mixed", "nvfp4_online", "minimax_m3_nvfp4", None),
            f"Invalid quantization '{quantization}'. \nFlashInfer TRTLLM routed MOE supports only: 'fp8', 'mxfp8', "
            "'modelopt_fp4', 'modelopt_mixed', 'nvfp4_online', 'minimax_m3_nvfp4', or bfloat16 (None).",
            where,
        )
    fusing = ("flashinfer_cutedsl", "flashinfer_trtllm", "experimental_sgl_trtllm", "flashinfer_trtllm_routed")
    if runner in (*fusing, "lora_triton", "lora_cutedsl", "lora_marlin"):
        s.set(f"not with the runner {runner}", f"{_OVERRIDES}:1529", disable_shared_experts_fusion=True)
    if runner == "cutlass" and quantization in ("fp8", "mxfp8"):
        s.require(s.ep_size == 1, "FP8/MXFP8 Cutlass MoE is only supported with ep_size == 1", where)


def _runner_by_quantization(s: State) -> None:
    where = f"{_OVERRIDES}:1449"
    runner = s.moe_runner_backend
    if s.quantization == "nvfp4_online":
        if not s.platform.sm100:
            s.value_error("--quantization nvfp4_online is supported only on NVIDIA Blackwell SM100/SM103 GPUs.", where)
        if runner == "auto":
            runner = "flashinfer_trtllm"
        elif runner not in ("flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutedsl"):
            s.value_error(
                "--quantization nvfp4_online supports only --moe-runner-backend flashinfer_trtllm or "
                "flashinfer_trtllm_routed, or flashinfer_cutedsl; flashinfer_megamoe requires --moe-a2a-backend "
                "flashinfer_megamoe and SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1.",
                where,
            )
    if s.quantization == "mxfp8" and runner not in _MXFP8_RUNNERS:
        runner = "flashinfer_megamoe" if s.moe_a2a_backend == "flashinfer_megamoe" else "flashinfer_trtllm"
    if runner == "auto" and s.quantization == "modelopt_fp4" and s.platform.major in (11, 12):
        runner = "flashinfer_cutlass"
    if runner != s.moe_runner_backend:
        s.set(f"runner for {s.quantization}", where, moe_runner_backend=runner)
