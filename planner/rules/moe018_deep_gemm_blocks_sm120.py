"""Block FP8 weights on sm_120 with DeepGEMM left on.

What it checks:
    FP8 weights in 128 x 128 blocks on RTX PRO 6000 or RTX 5090 with neither --fp8-gemm-backend nor a variable
    that switches DeepGEMM off.

Why:
    DeepGEMM has no recipe for sm_120 ("Unknown recipe"); published launches for these cards switch it off.

Fix:
    SGLANG_ENABLE_JIT_DEEPGEMM=0, or --fp8-gemm-backend triton.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]

_NAMES = ("SGLANG_ENABLE_JIT_DEEPGEMM", "SGLANG_ENABLE_DEEP_GEMM", "SGL_ENABLE_JIT_DEEPGEMM")


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.sm120 or ctx.form_of_weights is not WeightForm.FP8_BLOCK or ctx.given("fp8_gemm_runner_backend"):
        return
    if not any(ctx.env_reaches(name) for name in _NAMES):
        yield Hit(
            f"block FP8 weights on {ctx.where}: DeepGEMM has no recipe there",
            fields=("model_path", "quantization"),
            edits=(set_field("$SGLANG_ENABLE_JIT_DEEPGEMM", "0"),),
        )


RULE = Rule(
    code="MOE018",
    slug="deep-gemm-blocks-sm120",
    title="Block FP8 weights on sm_120 with DeepGEMM left on",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "ai-dynamo/aiconfigurator issue 1176",
        "SemiAnalysisAI/InferenceX qwen3.5_fp4_rtx6000pro_sglang_mtp.sh",
        "rtx6kpro GLM-5 page",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B-FP8 --tp 4 --attention-backend triton",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    good=Example(
        "SGLANG_ENABLE_JIT_DEEPGEMM=0 python3 -m sglang.launch_server --model-path "
        "Qwen/Qwen3-235B-A22B-FP8 --tp 4 --attention-backend triton",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    informs=True,
)
