"""Rejection sampling outside its conditions.

What it checks:
    --speculative-use-rejection-sampling with an algorithm other than EAGLE or EAGLE3, with a width above 1, or
    with changed accept thresholds.

Why:
    The engine raises: rejection sampling is written for a chain of the EAGLE family with thresholds of 1.0. The
    DDTREE proposals refuse it too.

Fix:
    Take the switch away. Sampled outputs then follow the target-only rule.

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
    if not ctx.on("speculative_use_rejection_sampling") or ctx.algorithm is None:
        return
    topk = ctx.number("speculative_eagle_topk")
    thresholds = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
    changed = [name for name in thresholds if ctx.asked(name) not in (None, 1, 1.0)]
    reason = None
    if ctx.algorithm not in ("EAGLE", "EAGLE3", "NEXTN"):
        reason = f"not with {ctx.algorithm}"
    elif topk is not None and topk > 1:
        reason = f"not with topk {topk}"
    elif changed:
        reason = "not with changed accept thresholds"
    if reason:
        yield Hit(
            f"rejection sampling is refused: {reason}",
            fields=("speculative_use_rejection_sampling",),
            edits=(unset("speculative_use_rejection_sampling"),),
        )


RULE = Rule(
    code="SPC016",
    slug="rejection-sampling",
    title="Rejection sampling outside its conditions",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/speculative_hook.py:1200",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash "
        "--speculative-use-rejection-sampling",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm EAGLE --speculative-use-rejection-sampling",
        version="0.5.23",
    ),
)
