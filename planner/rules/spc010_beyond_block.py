"""More draft tokens than the drafter's block.

What it checks:
    DFLASH with a block (or draft tokens) longer than the block size that the drafter was trained for.

Why:
    A block drafter fills one block; a path cannot be deeper than block_size - 1, so accept length cannot exceed
    block_size. Further tokens cost verify time and are not accepted.

Fix:
    Use the drafter's block size.

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
    if ctx.algorithm != "DFLASH" or ctx.drafter is None or ctx.dialect not in (None, "upstream"):
        return
    name = "speculative_dflash_block_size"
    name = name if ctx.given(name) else "speculative_num_draft_tokens"
    asked = ctx.number(name)
    if asked is not None and asked > ctx.drafter.block_size:
        yield Hit(
            f"{asked} draft tokens, but {ctx.drafter.id} drafts blocks of {ctx.drafter.block_size}",
            fields=(name,),
            edits=(set_field(name, ctx.drafter.block_size),),
        )


RULE = Rule(
    code="SPC010",
    slug="beyond-block",
    title="More draft tokens than the drafter's block",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=(
        "field notes, paragraph Depth (block_size = 8 caps a path at 7 tokens)",
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:388",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash --speculative-dflash-block-size "
        "16",
        drafter="kimi-k2.6-dflash",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash --speculative-dflash-block-size 8",
        drafter="kimi-k2.6-dflash",
        version="0.5.23",
    ),
)
