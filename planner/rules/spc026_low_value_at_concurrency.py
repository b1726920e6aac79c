"""A wide tree for many concurrent requests.

What it checks:
    A tree (width above 1) with 32 or more draft tokens while 32 or more requests may run.

Why:
    Verify time grows with rows; from some tens of requests on the extra rows cost more than the accepted tokens
    bring, and trees lose to chains and to no speculation.

Fix:
    Fewer draft tokens, or a chain; compare with speculation off at your concurrency.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    topk, tokens = ctx.number("speculative_eagle_topk"), ctx.number("speculative_num_draft_tokens")
    running = ctx.number("max_running_requests")
    if topk is None or tokens is None or running is None or topk < 2 or tokens < 32 or running < 32:
        return
    yield Hit(
        f"{tokens} draft tokens for up to {running} requests: {tokens * running} rows a verify step",
        fields=("speculative_num_draft_tokens", "max_running_requests"),
    )


RULE = Rule(
    code="SPC026",
    slug="low-value-at-concurrency",
    title="A wide tree for many concurrent requests",
    consequence=Consequence.SLOW,
    status=Status.SUSPECTED,
    sources=(
        "arXiv 2406.14066 (TurboSpec)",
        "vllm-project/vllm issue 42910 (a tree 31.6 % slower than the chain)",
        "sgl-project/sglang issue 22246",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path some/model --attention-backend triton "
        "--max-running-requests 128 --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "some/eagle3-draft --speculative-num-steps 6 --speculative-eagle-topk 10 "
        "--speculative-num-draft-tokens 60",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path some/model --attention-backend triton "
        "--max-running-requests 8 --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "some/eagle3-draft --speculative-num-steps 6 --speculative-eagle-topk 10 "
        "--speculative-num-draft-tokens 60",
    ),
    informs=True,
)
