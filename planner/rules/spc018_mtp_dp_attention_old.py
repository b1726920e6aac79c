"""Multi-token prediction with attention DP before it was supported.

What it checks:
    Speculation together with --enable-dp-attention on engines before PR 6081 (May 2025).

Why:
    The draft worker took no part in the collectives of attention DP; ranks waited for each other.

Fix:
    A newer engine, or no --enable-dp-attention.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.speculates and ctx.on("enable_dp_attention"):
        yield Hit(
            "speculation with attention DP hangs on this engine version",
            fields=("enable_dp_attention",),
            edits=(unset("enable_dp_attention"),),
            safe=False,
        )


RULE = Rule(
    code="SPC018",
    slug="mtp-dp-attention-old",
    title="Multi-token prediction with attention DP before it was supported",
    consequence=Consequence.HANG,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 6296, PR 6081",
        "sgl-project/sglang issue 4783",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp-size 16 --dp-size 8 "
        "--enable-dp-attention --nnodes 2 --node-rank 0 --dist-init-addr node0:1235 "
        "--speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 2",
        version="0.4.6",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp-size 16 --dp-size 16 "
        "--enable-dp-attention --nnodes 2 --node-rank 0 --dist-init-addr node0:1235 "
        "--speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 2",
        version="0.5.16",
    ),
    versions="<0.4.7",
)
