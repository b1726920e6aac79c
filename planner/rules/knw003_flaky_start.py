"""One start in five fails.

What it checks:
    Multi-token prediction of Qwen3.5 together with the hierarchical cache on 0.5.13.

Why:
    One report counts a crash at about one start in five; the cause is not known and nothing in the launch is
    wrong by itself.

Fix:
    Restart on failure; a newer engine.

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
    if ctx.eagle_family and ctx.facts is not None and ctx.facts.hybrid == "gdn" and ctx.on("enable_hierarchical_cache"):
        yield Hit("an intermittent failure at start is reported for this set", fields=("speculative_algorithm",))


RULE = Rule(
    code="KNW003",
    slug="flaky-start",
    title="One start in five fails",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 28431",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path models/Qwen3.5-397B-A17B-FP8 --tp 8 "
        "--attention-backend fa3 --enable-hierarchical-cache --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        version="0.5.13.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path models/Qwen3.5-397B-A17B-FP8 --tp 8 "
        "--attention-backend fa3 --enable-hierarchical-cache --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        version="0.5.16",
    ),
    informs=True,
    versions=">=0.5.13,<0.5.14",
)
