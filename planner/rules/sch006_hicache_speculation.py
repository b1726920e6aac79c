"""Hierarchical cache with speculation on engines of autumn 2025.

What it checks:
    --enable-hierarchical-cache with a speculative algorithm before 0.5.6.

Why:
    Errors from five concurrent requests on; partly fixed then. Launches of 2026 run both.

Fix:
    A newer engine, or one of the two; a person should choose.

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
    if ctx.speculates and ctx.on("enable_hierarchical_cache"):
        yield Hit(
            "speculation with hierarchical cache is unstable on this version",
            fields=("enable_hierarchical_cache",),
            edits=(unset("enable_hierarchical_cache"),),
            safe=False,
        )


RULE = Rule(
    code="SCH006",
    slug="hicache-speculation",
    title="Hierarchical cache with speculation on engines of autumn 2025",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 12076, PR 12025",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--max-running-requests 64 --enable-hierarchical-cache --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        version="0.5.4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--max-running-requests 64 --enable-hierarchical-cache --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        version="0.5.16",
    ),
    versions="<0.5.6",
)
