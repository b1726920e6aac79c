"""DeepSeek-V4 with attention DP smaller than TP.

What it checks:
    DeepSeek-V4 with --enable-dp-attention where dp_size differs from tp_size.

Why:
    The output projection reduces over the whole tensor-parallel group although ranks with an empty batch skip
    it; the others wait. The report closed without a fix.

Fix:
    dp_size equal to tp_size; a person should look.

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
    if ctx.architecture != "DeepseekV4ForCausalLM" or not ctx.on("enable_dp_attention"):
        return
    if ctx.tp is not None and ctx.dp is not None and 1 < ctx.dp < ctx.tp:
        yield Hit(
            f"DeepSeek-V4 with attention DP {ctx.dp} of TP {ctx.tp}: ranks with an empty batch can hang the others",
            fields=("dp_size",),
            edits=(set_field("dp_size", ctx.tp),),
            safe=False,
        )


RULE = Rule(
    code="PAR011",
    slug="dsv4-attention-dp",
    title="DeepSeek-V4 with attention DP smaller than TP",
    consequence=Consequence.HANG,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 28915",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "sglang serve --model-path sgl-project/DeepSeek-V4-Pro-FP8 --tp 32 --ep 32 --dp 4 "
        "--enable-dp-attention --moe-a2a-backend deepep --nnodes 4 --node-rank 0 --dist-init-addr "
        "node0:20000",
    ),
    good=Example(
        "sglang serve --model-path sgl-project/DeepSeek-V4-Pro-FP8 --tp 32 --ep 32 --dp 32 "
        "--enable-dp-attention --moe-a2a-backend deepep --nnodes 4 --node-rank 0 --dist-init-addr "
        "node0:20000",
    ),
)
