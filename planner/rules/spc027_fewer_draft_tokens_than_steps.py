"""Fewer draft tokens than steps + 1 in a tree.

What it checks:
    The EAGLE family and STANDALONE with a width above 1 where the draft tokens are fewer than steps + 1.

Why:
    The engine resets the number for a chain only. For a tree it starts, reports itself ready, and the scheduler dies
    at the first decode: the draft writes steps + 1 positions where the tree has fewer.

Fix:
    steps + 1 draft tokens at least.

Known problems:
    Run on 0.5.15.post1 only (STANDALONE, graphs and eager); for other releases the finding is a suspicion.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_RUN_ON = ("0.5.15.post1",)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    steps, topk = ctx.number("speculative_num_steps"), ctx.number("speculative_eagle_topk")
    tokens = ctx.number("speculative_num_draft_tokens")
    if not (ctx.eagle_family or ctx.algorithm == "STANDALONE") or steps is None or topk is None or tokens is None:
        return
    if topk > 1 and tokens < steps + 1:
        yield Hit(
            f"{tokens} draft tokens for {steps} steps of width {topk}: the scheduler dies at the first decode",
            fields=("speculative_num_draft_tokens",),
            edits=(set_field("speculative_num_draft_tokens", steps + 1),),
            suspected=ctx.version.releases != _RUN_ON,
        )


RULE = Rule(
    code="SPC027",
    slug="fewer-draft-tokens-than-steps",
    title="Fewer draft tokens than steps + 1 in a tree",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.15.post1 on an H200 (docs/h200.md): 3 tokens with 4 steps with graphs, 5 with 7 steps eager; "
        "The expanded size of the tensor (3) must match the existing size (5)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path some/model --attention-backend triton "
        "--speculative-algorithm STANDALONE --speculative-draft-model-path some/draft "
        "--speculative-num-steps 4 --speculative-eagle-topk 8 --speculative-num-draft-tokens 3",
        version="0.5.15.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path some/model --attention-backend triton "
        "--speculative-algorithm STANDALONE --speculative-draft-model-path some/draft "
        "--speculative-num-steps 4 --speculative-eagle-topk 8 --speculative-num-draft-tokens 5",
        version="0.5.15.post1",
    ),
)
