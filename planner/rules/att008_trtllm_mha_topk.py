"""trtllm_mha with a width above 1.

What it checks:
    trtllm_mha named beside --speculative-eagle-topk above 1.

Why:
    The engine raises "trtllm_mha backend only supports topk = 1 for speculative decoding".

Fix:
    A chain (topk 1 and steps + 1 draft tokens), or another backend.

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
    topk, steps = ctx.number("speculative_eagle_topk"), ctx.number("speculative_num_steps")
    if not ctx.eagle_family or topk is None or topk < 2 or "trtllm_mha" not in ctx.asked_attention:
        return
    chain = [set_field("speculative_eagle_topk", 1)]
    if steps is not None:
        chain.append(set_field("speculative_num_draft_tokens", steps + 1))
    yield Hit(
        f"trtllm_mha takes topk 1 only, not {topk}",
        fields=("speculative_eagle_topk", ctx.attention_field),
        edits=tuple(chain),
    )


RULE = Rule(
    code="ATT008",
    slug="trtllm-mha-topk",
    title="trtllm_mha with a width above 1",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/speculative_hook.py:1179",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 4 --attention-backend "
        "trtllm_mha --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "drafts/Qwen3-235B-eagle3 --speculative-num-steps 3 --speculative-eagle-topk 4 "
        "--speculative-num-draft-tokens 16",
        hw="b200",
        gpus=4,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 4 --attention-backend "
        "trtllm_mha --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "drafts/Qwen3-235B-eagle3 --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
        hw="b200",
        gpus=4,
    ),
)
