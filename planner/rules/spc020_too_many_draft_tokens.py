"""More draft tokens than the tree has.

What it checks:
    The EAGLE family with a width above 1 where the draft tokens exceed all nodes that steps and width can give.

Why:
    With k candidates a step a tree of n steps has at most 1 + k + (n - 1) k^2 nodes to choose from; the rest of
    the budget cannot be filled.

Fix:
    Lower the draft tokens to that number.

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
    steps, topk = ctx.number("speculative_num_steps"), ctx.number("speculative_eagle_topk")
    tokens = ctx.number("speculative_num_draft_tokens")
    if not ctx.eagle_family or steps is None or topk is None or tokens is None or topk < 2 or steps < 1:
        return
    most = 1 + topk + (steps - 1) * topk * topk
    if tokens > most:
        yield Hit(
            f"{tokens} draft tokens, but {steps} steps of width {topk} give at most {most} nodes",
            fields=("speculative_num_draft_tokens",),
            edits=(set_field("speculative_num_draft_tokens", most),),
        )


RULE = Rule(
    code="SPC020",
    slug="too-many-draft-tokens",
    title="More draft tokens than the tree has",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/speculative/eagle_utils.py (tree from topk scores of each step)",
        "arXiv 2406.16858 (EAGLE-2, dynamic draft trees)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path some/model --attention-backend triton "
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path some/eagle3-draft "
        "--speculative-num-steps 1 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path some/model --attention-backend triton "
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path some/eagle3-draft "
        "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
    ),
)
