"""A race in the FP4 matrix kernel on sm_120.

What it checks:
    --fp4-gemm-backend flashinfer_cutlass on sm_120 with an engine before the fixed flashinfer was bundled.

Why:
    The kernel reads before a write has landed; NaN reaches the sampler and a device-side assert ends the
    server. --enable-nan-detection only hides it.

Fix:
    Write flashinfer_cudnn.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.sm120 and ctx.text("fp4_gemm_runner_backend") == "flashinfer_cutlass":
        yield Hit(
            "this engine's flashinfer_cutlass FP4 kernel has a race that yields NaN on sm_120",
            fields=("fp4_gemm_runner_backend",),
            edits=(set_field("fp4_gemm_runner_backend", "flashinfer_cudnn"),),
        )


RULE = Rule(
    code="MOE006",
    slug="fp4-cutlass-race",
    title="A race in the FP4 matrix kernel on sm_120",
    consequence=Consequence.WRONG_OUTPUT,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 20043",
        "flashinfer-ai/flashinfer issue 2708, PR 2716",
        "rtx6kpro GLM-5 page",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "SGLANG_ENABLE_SPEC_V2=True python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 "
        "--quantization modelopt_fp4 --attention-backend flashinfer --kv-cache-dtype bf16 "
        "--fp4-gemm-backend flashinfer_cutlass",
        hw="rtx_pro_6000",
        gpus=8,
        version="2026-03",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 --quantization modelopt_fp4 "
        "--attention-backend flashinfer --kv-cache-dtype bf16 --fp4-gemm-backend flashinfer_cutlass",
        hw="rtx_pro_6000",
        gpus=8,
        version="0.5.16",
    ),
    versions="<0.5.11",
)
