"""Overlap scheduling is switched off by another setting.

What it checks:
    Pipeline parallelism, a width above 1 on engines before 0.5.15, or DFLASH before 0.5.13.

Why:
    The scheduler then prepares a batch only after the last one has finished; host time adds to every step. The
    engine says so in one line of the log.

Fix:
    Nothing to change where the setting is needed; know the cost.

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
    topk = ctx.number("speculative_eagle_topk")
    reason = None
    if ctx.pp is not None and ctx.pp > 1:
        reason = ("pp_size", f"pipeline parallelism {ctx.pp}")
    elif ctx.algorithm in ("DFLASH", "DDTREE") and ctx.within("<0.5.13") is True:
        reason = ("speculative_algorithm", f"{ctx.algorithm} on this version")
    elif ctx.eagle_family and topk is not None and topk > 1 and ctx.within("<0.5.15") is True:
        reason = ("speculative_eagle_topk", f"topk {topk} on this version")
    if reason is not None and not ctx.on("disable_overlap_schedule"):
        yield Hit(f"overlap scheduling is off with {reason[1]}", fields=(reason[0],))


RULE = Rule(
    code="SCH004",
    slug="overlap-off",
    title="Overlap scheduling is switched off by another setting",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/overrides.py:1624",
        "sglang 0.5.12.post1 srt/server_args.py:3707,3748",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --max-running-requests "
        "64 --speculative-algorithm DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        version="0.5.12.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --max-running-requests "
        "64 --speculative-algorithm DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        version="0.5.23",
    ),
    informs=True,
)
