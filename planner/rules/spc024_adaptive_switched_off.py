"""Adaptive speculation is switched off by another setting.

What it checks:
    --speculative-adaptive with attention data parallelism or with a width above 1.

Why:
    The adaptive controller changes the number of steps at run time. It is off under attention DP and for
    unsupported sets, with at most a line in the log, and the fixed numbers run.

Fix:
    Take one of the two away; a person should choose.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.on("speculative_adaptive") or not ctx.speculates:
        return
    topk = ctx.number("speculative_eagle_topk")
    if ctx.on("enable_dp_attention") or (topk is not None and topk > 1):
        why = "attention DP" if ctx.on("enable_dp_attention") else f"topk {topk}"
        yield Hit(f"--speculative-adaptive has no effect with {why}", fields=("speculative_adaptive",))


RULE = Rule(
    code="SPC024",
    slug="adaptive-switched-off",
    title="Adaptive speculation is switched off by another setting",
    consequence=Consequence.SILENT,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang PR 21599, PR 23289 (guard for unsupported sets)",
        "sgl-project/sglang PR 24055",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --max-running-requests 256 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 "
        "--speculative-adaptive",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--max-running-requests 256 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-adaptive",
        version="0.5.16",
    ),
)
