"""Draft numbers are given without an algorithm.

What it checks:
    --speculative-num-steps, --speculative-num-draft-tokens, --speculative-eagle-topk or a draft path in a
    launch without --speculative-algorithm.

Why:
    The engine looks at these only when an algorithm is set. It starts without speculation and says nothing; the
    server answers correctly and slowly.

Fix:
    Name the algorithm, or take the numbers away. Which one needs a person.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_NUMBERS = (
    "speculative_num_steps",
    "speculative_num_draft_tokens",
    "speculative_eagle_topk",
    "speculative_draft_model_path",
    "speculative_dflash_block_size",
    "speculative_ddtree_budget",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.speculates or ctx.given("speculative_algorithm"):
        return
    given = [name for name in _NUMBERS if ctx.given(name)]
    if given:
        yield Hit(
            f"{', '.join(ctx.flag_text(name) for name in given)} without --speculative-algorithm: no speculation runs",
            fields=tuple(given),
            edits=tuple(unset(name) for name in given),
            safe=False,
        )


RULE = Rule(
    code="SPC001",
    slug="numbers-without-algorithm",
    title="Draft numbers are given without an algorithm",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "SemiAnalysisAI/InferenceX PR 2305 (changelog)",
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-num-steps 1 --speculative-num-draft-tokens 2",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 2",
    ),
)
