"""Draft tokens of a chain do not match its steps.

What it checks:
    EAGLE family with --speculative-eagle-topk 1 and --speculative-num-draft-tokens other than steps + 1.

Why:
    A chain of n steps has n + 1 tokens to verify; the engine sets the number silently, so the value in the file
    is not what runs.

Fix:
    Write steps + 1. Safe: it is what the engine runs.

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
    steps, tokens = ctx.number("speculative_num_steps"), ctx.number("speculative_num_draft_tokens")
    if not (ctx.eagle_family or ctx.algorithm == "STANDALONE") or ctx.number("speculative_eagle_topk") != 1:
        return
    if steps is not None and tokens is not None and tokens != steps + 1:
        yield Hit(
            f"with topk 1 the engine resets {tokens} draft tokens to {steps + 1} (steps {steps} + 1)",
            fields=("speculative_num_draft_tokens",),
            edits=(set_field("speculative_num_draft_tokens", steps + 1),),
        )


RULE = Rule(
    code="SPC003",
    slug="chain-draft-tokens",
    title="Draft tokens of a chain do not match its steps",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:1260",
        "sglang 0.5.12.post1 srt/server_args.py:3833",
        "sgl-project/SpecForge issue 310",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm EAGLE --speculative-num-steps 4 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 24",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm EAGLE --speculative-num-steps 4 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 5",
    ),
)
