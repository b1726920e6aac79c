"""Steps, width and draft tokens are not given together.

What it checks:
    EAGLE, EAGLE3, NEXTN or STANDALONE with some but not all of --speculative-num-steps,
    --speculative-eagle-topk and --speculative-num-draft-tokens.

Why:
    Without steps the engine asserts that the other two are absent too; with steps and without one of the others
    it compares None with a number. It fills all three only when none is given.

Fix:
    Complete the set as the engine would for a chain: width 1 and steps + 1 draft tokens.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_TRIPLE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not (ctx.eagle_family or ctx.algorithm == "STANDALONE") or ctx.on("speculative_adaptive"):
        return
    missing = [name for name in _TRIPLE if not ctx.given(name)]
    if not missing or len(missing) == len(_TRIPLE):
        return
    steps, tokens = ctx.number("speculative_num_steps"), ctx.number("speculative_num_draft_tokens")
    steps = steps if steps is not None else (tokens - 1 if tokens is not None and tokens > 1 else 3)
    values = {
        "speculative_num_steps": steps,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": steps + 1,
    }
    yield Hit(
        f"{ctx.algorithm} without {', '.join('--' + name.replace('_', '-') for name in missing)}: "
        "the three numbers go together, or none of them",
        fields=tuple(name for name in _TRIPLE if ctx.given(name)),
        edits=tuple(set_field(name, values[name]) for name in missing),
    )


RULE = Rule(
    code="SPC002",
    slug="incomplete-triple",
    title="Steps, width and draft tokens are not given together",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:1158",
        "ai-dynamo/aiconfigurator issue 1383 (every artefact with nextn > 0 crashed at start)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm EAGLE --speculative-num-draft-tokens 4",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --speculative-algorithm EAGLE",
        version="0.5.16",
    ),
)
