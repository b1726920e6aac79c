"""Width or steps that DFLASH does not use.

What it checks:
    DFLASH with --speculative-eagle-topk above 1 or --speculative-num-steps other than 1.

Why:
    Released DFLASH is a chain: the engine forces one step and width 1 with a warning in the log. A tree needs a
    build that has one (see the dialects).

Fix:
    Take both away. Safe: it is what the engine runs.

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
    if ctx.algorithm != "DFLASH" or ctx.dialect not in (None, "upstream"):
        return
    topk, steps = ctx.number("speculative_eagle_topk"), ctx.number("speculative_num_steps")
    if topk is not None and topk != 1:
        yield Hit(
            f"DFLASH is a chain: the engine sets topk {topk} to 1",
            fields=("speculative_eagle_topk",),
            edits=(unset("speculative_eagle_topk"),),
        )
    if steps is not None and steps != 1:
        yield Hit(
            f"DFLASH drafts a block in one step: the engine sets {steps} steps to 1",
            fields=("speculative_num_steps",),
            edits=(unset("speculative_num_steps"),),
        )


RULE = Rule(
    code="SPC008",
    slug="chain-only-algorithm",
    title="Width or steps that DFLASH does not use",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:342,359",
        "sglang 0.5.12.post1 srt/server_args.py:3614,3623",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash --speculative-eagle-topk 4",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        version="0.5.23",
    ),
)
