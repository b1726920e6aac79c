"""The algorithm needs a draft model and none is given.

What it checks:
    EAGLE3, STANDALONE or DFLASH without --speculative-draft-model-path, on a target that is not known to carry
    a draft of its own.

Why:
    DFLASH and STANDALONE are refused at once. EAGLE3 loads the target a second time as its own draft and then
    fails on a missing attribute (set_embed, hot_token_id).

Fix:
    A person has to name the draft; without one the speculative arguments can be taken away.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_SPECULATIVE = (
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "speculative_dflash_block_size",
    "speculative_ddtree_budget",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm not in ("EAGLE3", "STANDALONE", "DFLASH", "DDTREE") or ctx.given("speculative_draft_model_path"):
        return
    if ctx.open_ended:
        return
    unsure = ctx.algorithm == "EAGLE3" and (ctx.facts is None or ctx.facts.nextn is None or ctx.facts.nextn > 0)
    yield Hit(
        f"{ctx.algorithm} without --speculative-draft-model-path",
        fields=("speculative_algorithm",),
        edits=tuple(unset(name) for name in _SPECULATIVE if ctx.given(name)),
        safe=False,
        suspected=unsure,
    )


RULE = Rule(
    code="SPC004",
    slug="no-draft",
    title="The algorithm needs a draft model and none is given",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 36528 and PR 36593",
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:326",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-0.5B-Instruct --speculative-algorithm "
        "EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-0.5B-Instruct --speculative-algorithm "
        "EAGLE3 --speculative-draft-model-path some/eagle3-draft --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
)
