"""A draft window shorter than the block.

What it checks:
    --speculative-draft-window-size that is not positive or below the number of draft tokens.

Why:
    The engine raises: the window must hold the block that is drafted.

Fix:
    Take the window away or raise it to the number of draft tokens.

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
    window = ctx.number("speculative_draft_window_size")
    tokens = ctx.number("speculative_num_draft_tokens") or ctx.number("speculative_dflash_block_size") or 1
    if window is not None and ctx.algorithm == "DFLASH" and (window <= 0 or window < tokens):
        yield Hit(
            f"draft window {window} is below {tokens} draft tokens",
            fields=("speculative_draft_window_size",),
            edits=(unset("speculative_draft_window_size"),),
        )


RULE = Rule(
    code="SPC021",
    slug="draft-window",
    title="A draft window shorter than the block",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/speculative_hook.py:429",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash --speculative-num-draft-tokens 8 "
        "--speculative-draft-window-size 4",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash --speculative-num-draft-tokens 8 "
        "--speculative-draft-window-size 4096",
        version="0.5.23",
    ),
)
