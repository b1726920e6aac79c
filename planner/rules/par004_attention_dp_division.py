"""Attention DP does not divide TP.

What it checks:
    --enable-dp-attention with a dp_size that does not divide tp_size, or with a dp_size of 1.

Why:
    Attention data parallelism splits the tensor-parallel group; the engine asserts that tp_size is a multiple
    of dp_size. With dp_size 1 the switch has no effect.

Fix:
    dp_size equal to tp_size.

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
    if not ctx.on("enable_dp_attention") or ctx.tp is None or ctx.dp is None or ctx.launcher == "dynamo":
        return
    if ctx.tp % ctx.dp:
        yield Hit(
            f"attention DP {ctx.dp} does not divide TP {ctx.tp}",
            fields=("dp_size", "enable_dp_attention"),
            edits=(set_field("dp_size", ctx.tp),),
            safe=False,
        )
    elif ctx.dp == 1 and ctx.tp > 1 and not ctx.given("dp_size"):
        yield Hit(
            "--enable-dp-attention with dp_size 1 has no effect",
            fields=("enable_dp_attention",),
            consequence=Consequence.SILENT,
        )


RULE = Rule(
    code="PAR004",
    slug="attention-dp-division",
    title="Attention DP does not divide TP",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/parallel_hook.py:170",
        "sgl-project/sglang PR 4390",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 3 --enable-dp-attention",
        hw="h200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 --enable-dp-attention",
        hw="h200",
        gpus=8,
    ),
)
