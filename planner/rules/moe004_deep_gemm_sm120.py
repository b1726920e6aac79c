"""DeepGEMM is not available on sm_120.

What it checks:
    --moe-runner-backend deep_gemm or --fp8-gemm-backend deep_gemm on RTX PRO 6000 or RTX 5090.

Why:
    DeepGEMM has no kernels there. The expert runner falls back to cutlass without a word; block FP8 matrices
    end in "Unknown recipe".

Fix:
    Write what runs: cutlass.

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
    if not ctx.sm120:
        return
    for name in ("moe_runner_backend", "fp8_gemm_runner_backend"):
        if ctx.text(name) == "deep_gemm":
            yield Hit(
                f"{ctx.flag_text(name)} deep_gemm: DeepGEMM has no kernels for {ctx.where}",
                fields=(name,),
                edits=(set_field(name, "cutlass"),),
            )


RULE = Rule(
    code="MOE004",
    slug="deep-gemm-sm120",
    title="DeepGEMM is not available on sm_120",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "rtx6kpro GLM-5 page (compose)",
        "ai-dynamo/aiconfigurator issue 1176 (Unknown recipe on 8x RTX PRO 6000)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 --quantization modelopt_fp4 "
        "--attention-backend flashinfer --kv-cache-dtype bf16 --moe-runner-backend deep_gemm",
        hw="rtx_pro_6000",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 --quantization modelopt_fp4 "
        "--attention-backend flashinfer --kv-cache-dtype bf16 --moe-runner-backend cutlass",
        hw="rtx_pro_6000",
        gpus=8,
    ),
)
