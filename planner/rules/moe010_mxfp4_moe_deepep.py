"""flashinfer_mxfp4 experts behind DeepEP's low-latency dispatch.

What it checks:
    --moe-runner-backend flashinfer_mxfp4 with --moe-a2a-backend deepep where decoding uses the low-latency mode
    (auto or low_latency).

Why:
    The runner reads a field that the low-latency dispatch output does not have; capture of the decode graphs
    fails with an AttributeError.

Fix:
    deep_gemm as expert runner, or --deepep-mode normal.

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
    if ctx.text("moe_runner_backend") != "flashinfer_mxfp4" or ctx.text("moe_a2a_backend") != "deepep":
        return
    if ctx.text("deepep_mode") != "normal":
        yield Hit(
            "flashinfer_mxfp4 experts do not take DeepEP's low-latency dispatch",
            fields=("moe_runner_backend", "moe_a2a_backend"),
            edits=(set_field("moe_runner_backend", "deep_gemm"),),
        )


RULE = Rule(
    code="MOE010",
    slug="mxfp4-moe-deepep",
    title="flashinfer_mxfp4 experts behind DeepEP's low-latency dispatch",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sgl-project/sglang issue 29849 (0.5.14)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 4 --dp-size"
        " 4 --enable-dp-attention --ep-size 4 --moe-a2a-backend deepep --moe-runner-backend "
        "flashinfer_mxfp4",
        hw="b300",
        gpus=4,
        version="0.5.14",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 4 --dp-size"
        " 4 --enable-dp-attention --ep-size 4 --moe-a2a-backend deepep --moe-runner-backend deep_gemm",
        hw="b300",
        gpus=4,
        version="0.5.14",
    ),
)
