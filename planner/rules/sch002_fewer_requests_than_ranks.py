"""Fewer requests than attention-DP ranks.

What it checks:
    --max-running-requests below the attention-DP size.

Why:
    The limit is divided by the attention-DP size with the remainder dropped: a rank is left with none, and the
    engine refuses to build its pool.

Fix:
    At least one request a rank.

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
    running, dp = ctx.number("max_running_requests"), ctx.attention_dp
    if running is not None and dp is not None and dp > running:
        yield Hit(
            f"{running} requests over attention DP {dp} leave none for a rank",
            fields=("max_running_requests", "dp_size"),
            edits=(set_field("max_running_requests", dp),),
        )


RULE = Rule(
    code="SCH002",
    slug="fewer-requests-than-ranks",
    title="Fewer requests than attention-DP ranks",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.16 kv_cache_configurator.py:1631",
        "sglang 0.5.23 kv_cache_configurator.py:3119",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --max-running-requests 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --max-running-requests 64",
    ),
)
