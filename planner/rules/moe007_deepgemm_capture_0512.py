"""DeepGEMM crashes during graph capture on 0.5.12.

What it checks:
    FP8 weights on sm_100 or sm_103 with the 0.5.12 image, graphs on and the FP8 matrix backend left to the
    engine.

Why:
    An illegal memory access in DeepGEMM during capture; a recipe went on with the cutlass backend, and the same
    text ran on a later nightly without it.

Fix:
    Write --fp8-gemm-backend cutlass, or another image.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_OFF = ("0", "false", "no", "off")


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.sm100 or not ctx.graphs_on or ctx.given("fp8_gemm_runner_backend"):
        return
    form = ctx.form_of_weights
    if not (ctx.quantization == "fp8" or (form is not None and form.is_fp8)):
        return
    for name in ("SGLANG_ENABLE_JIT_DEEPGEMM", "SGLANG_ENABLE_DEEP_GEMM", "SGL_ENABLE_JIT_DEEPGEMM"):
        if (ctx.env_value(name) or "").lower() in _OFF:
            return
    yield Hit(
        f"FP8 through DeepGEMM on {ctx.where} crashes in graph capture on 0.5.12",
        fields=("quantization", "model_path"),
        edits=(set_field("fp8_gemm_runner_backend", "cutlass"),),
    )


RULE = Rule(
    code="MOE007",
    slug="deepgemm-capture-0512",
    title="DeepGEMM crashes during graph capture on 0.5.12",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("SemiAnalysisAI/InferenceX PR 1447, PR 1567",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path zai-org/GLM-5-FP8 --tensor-parallel-size 8 "
        "--kv-cache-dtype fp8_e4m3 --quantization fp8 --moe-runner-backend flashinfer_trtllm "
        "--max-running-requests 64 --cuda-graph-max-bs 64",
        hw="b200",
        gpus=8,
        version="0.5.12",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path zai-org/GLM-5-FP8 --tensor-parallel-size 8 "
        "--kv-cache-dtype fp8_e4m3 --quantization fp8 --moe-runner-backend flashinfer_trtllm "
        "--max-running-requests 64 --cuda-graph-max-bs 64 --fp8-gemm-backend cutlass",
        hw="b200",
        gpus=8,
        version="0.5.12",
    ),
    versions="==0.5.12",
)
