"""Two different numbers for one block.

What it checks:
    DFLASH with --speculative-dflash-block-size and --speculative-num-draft-tokens set to different values.

Why:
    For DFLASH the two are one number; the engine raises when they differ. Builds that set num_draft_tokens to
    budget + 1 must not pass both.

Fix:
    Keep the block size.

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
    block, tokens = ctx.number("speculative_dflash_block_size"), ctx.number("speculative_num_draft_tokens")
    if ctx.algorithm == "DFLASH" and block is not None and tokens is not None and block != tokens:
        yield Hit(
            f"block size {block} and {tokens} draft tokens: for DFLASH they are one number",
            fields=("speculative_num_draft_tokens", "speculative_dflash_block_size"),
            edits=(unset("speculative_num_draft_tokens"),),
        )


RULE = Rule(
    code="SPC007",
    slug="block-size-conflict",
    title="Two different numbers for one block",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:379",
        "sglang 0.5.12.post1 srt/server_args.py:3638",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash --speculative-dflash-block-size 8"
        " --speculative-num-draft-tokens 9",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash --speculative-dflash-block-size 8",
        version="0.5.23",
    ),
)
