"""Speculation with attention DP smaller than TP.

What it checks:
    The EAGLE family with --enable-dp-attention where dp_size differs from tp_size.

Why:
    On two nodes of eight H20 with TP16, dp 2 and EAGLE failed under concurrent requests, while dp 16 with EAGLE
    and dp 2 without it ran. The cause is open.

Fix:
    Set dp_size to tp_size, or leave speculation off. Both change capacity, so a person should look.

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
    if not ctx.eagle_family or not ctx.on("enable_dp_attention") or ctx.tp is None or ctx.dp is None:
        return
    if 1 < ctx.dp < ctx.tp:
        yield Hit(
            f"{ctx.algorithm} with attention DP {ctx.dp} of TP {ctx.tp}: a reported failure under load",
            fields=("dp_size", "enable_dp_attention"),
            edits=(set_field("dp_size", ctx.tp),),
            safe=False,
        )


RULE = Rule(
    code="SPC017",
    slug="eagle-dp-attention-split",
    title="Speculation with attention DP smaller than TP",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 31384 (matrix of the reporter)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp 16 --ep 16 --dp 2 "
        "--enable-dp-attention --nnodes 2 --node-rank 0 --dist-init-addr node0:20000 "
        "--max-running-requests 64 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        version="0.5.15",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp 16 --ep 16 --dp 16 "
        "--enable-dp-attention --nnodes 2 --node-rank 0 --dist-init-addr node0:20000 "
        "--max-running-requests 64 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        version="0.5.15",
    ),
)
