"""GLM-5.2 FP4 with EAGLE does not capture on 0.5.15.

What it checks:
    GLM-5 in FP4 with the EAGLE family on sm_100 or sm_103 under 0.5.15.

Why:
    An illegal memory access during decode graph capture; an image of one week earlier runs the same flags. The
    cause was not found.

Fix:
    Another image; the published set of 3 steps ran on 0.5.16.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.architecture != "GlmMoeDsaForCausalLM" or ctx.form_of_weights is not WeightForm.NVFP4:
        return
    if ctx.eagle_family and ctx.sm100 and ctx.graphs_on:
        yield Hit(
            "GLM-5.2 FP4 + EAGLE: unresolved illegal access in decode capture on 0.5.15",
            fields=("speculative_algorithm",),
        )


RULE = Rule(
    code="GRF003",
    slug="glm52-eagle-capture-0515",
    title="GLM-5.2 FP4 with EAGLE does not capture on 0.5.15",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 31093",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path GLM-5.2-NVFP4 --tp 8 --quantization modelopt_fp4 "
        "--context-length 65536 --max-running-requests 64 --speculative-algorithm EAGLE "
        "--speculative-num-steps 6 --speculative-eagle-topk 1 --speculative-num-draft-tokens 7",
        hw="b200",
        gpus=8,
        version="0.5.15",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path GLM-5.2-NVFP4 --tp 8 --quantization modelopt_fp4 "
        "--context-length 65536 --max-running-requests 64 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="b200",
        gpus=8,
        version="0.5.16",
    ),
    versions=">=0.5.15,<0.5.16",
)
