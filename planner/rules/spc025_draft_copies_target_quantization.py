"""The draft inherits the target's quantisation.

What it checks:
    A separate EAGLE3, STANDALONE or DFLASH draft beside --quantization modelopt_fp4 without
    --speculative-draft-model-quantization.

Why:
    The draft's quantisation defaults to the target's. A BF16 draft is then looked up for FP4 scales that it
    does not have.

Fix:
    Write --speculative-draft-model-quantization unquant for a BF16 draft.

Known problems:
    Engines that read the draft's own config first are not affected; hence suspected.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    path = ctx.text("speculative_draft_model_path")
    if path is None or ctx.quantization not in ("modelopt_fp4", "modelopt_fp8", "mxfp4"):
        return
    if ctx.given("speculative_draft_model_quantization") or not ctx.speculates or "fp4" in path.lower():
        return
    yield Hit(
        f"the draft inherits --quantization {ctx.quantization}; say what it is stored in",
        fields=("quantization",),
        edits=(set_field("speculative_draft_model_quantization", "unquant"),),
        safe=False,
    )


RULE = Rule(
    code="SPC025",
    slug="draft-copies-target-quantization",
    title="The draft inherits the target's quantisation",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "local-inference-lab/rtx6kpro PR 10 (draft quant inheritance)",
        "sgl-project/sglang issue 25943",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path lukealonso/MiniMax-M2.7-NVFP4 --tp 2 --quantization"
        " modelopt_fp4 --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "drafts/MiniMax-M2.5-Eagle3 --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
        hw="rtx_pro_6000",
        gpus=2,
        version="0.5.12",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path lukealonso/MiniMax-M2.7-NVFP4 --tp 2 --quantization"
        " modelopt_fp4 --speculative-draft-model-quantization unquant --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path drafts/MiniMax-M2.5-Eagle3 --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="rtx_pro_6000",
        gpus=2,
        version="0.5.12",
    ),
)
