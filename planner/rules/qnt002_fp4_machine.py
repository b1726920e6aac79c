"""FP4 weights on a GPU without FP4 units.

What it checks:
    --quantization modelopt_fp4 or an NVFP4 checkpoint on Hopper or older.

Why:
    The FP4 kernels are for Blackwell. Newer engines unpack FP4 to BF16 with Marlin kernels for dense layers;
    older ones raise on the compute capability.

Fix:
    A checkpoint in FP8 or INT4; a person has to choose it.

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
    if ctx.sm is None or ctx.sm >= 100 or not ctx.on_cuda:
        return
    if ctx.quantization == "modelopt_fp4" or ctx.named_form is WeightForm.NVFP4:
        yield Hit(f"FP4 weights on {ctx.where}, which has no FP4 units", fields=("quantization", "model_path"))


RULE = Rule(
    code="QNT002",
    slug="fp4-machine",
    title="FP4 weights on a GPU without FP4 units",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sglang 0.5.5 srt/layers/quantization/modelopt_quant.py (minimum capability 100)",
        "sglang 0.5.23 srt/layers/quantization/modelopt_quant.py",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/DeepSeek-R1-0528-NVFP4 --tp 8 --quantization modelopt_fp4",
        hw="h200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/DeepSeek-R1-0528-NVFP4 --tp 8 --quantization modelopt_fp4",
        hw="b200",
        gpus=8,
    ),
)
