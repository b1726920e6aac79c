"""--quantization does not match the checkpoint's name.

What it checks:
    A --quantization that says another storage than the checkpoint's own name (FP8, NVFP4, MXFP4, AWQ).

Why:
    The engine uses the checkpoint's own config where it has one and the flag elsewhere; which of the two wins
    changed between versions. A reader cannot tell what runs.

Fix:
    Take the flag away: the checkpoint says what it is.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_FAMILY = {
    "fp8": "fp8",
    "w8a8_fp8": "fp8",
    "modelopt_fp8": "fp8",
    "modelopt_fp4": "fp4",
    "nvfp4_online": "fp4",
    "mxfp4": "mxfp4",
    "awq": "int4",
    "awq_marlin": "int4",
    "gptq": "int4",
    "gptq_marlin": "int4",
    "w4afp8": "int4",
}
_OF_FORM = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4", "mxfp4": "mxfp4", "int4": "int4"}


def _check(ctx: RuleContext) -> Iterator[Hit]:
    asked = _FAMILY.get(ctx.quantization or "")
    form = ctx.named_form
    named = _OF_FORM.get(form.value) if form is not None else None
    if asked is not None and named is not None and asked != named:
        yield Hit(
            f"--quantization {ctx.quantization} beside a checkpoint named as {named}",
            fields=("quantization",),
            edits=(unset("quantization"),),
            safe=False,
        )


RULE = Rule(
    code="QNT001",
    slug="quantization-against-checkpoint",
    title="--quantization does not match the checkpoint's name",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "SemiAnalysisAI/InferenceX glm5_fp4_b200_mtp.sh (fp8 beside an NVFP4 checkpoint, in service)",
        "sglang 0.5.23 srt/configs/model_config.py (verification of the quantisation argument)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5-NVFP4 --tensor-parallel-size 8 "
        "--quantization fp8 --moe-runner-backend flashinfer_trtllm",
        hw="b200",
        gpus=8,
        version="2026",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5-NVFP4 --tensor-parallel-size 8 "
        "--quantization modelopt_fp4 --moe-runner-backend flashinfer_trtllm",
        hw="b200",
        gpus=8,
        version="2026",
    ),
)
