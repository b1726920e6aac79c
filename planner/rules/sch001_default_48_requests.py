"""Speculation without a request limit runs 48 requests.

What it checks:
    A speculative algorithm without --max-running-requests (DeepSeek-V4 sets 256 itself).

Why:
    The engine sets max_running_requests to 48 for speculation, for the whole server; attention DP divides it
    again: 6 a rank at dp 8. Further requests queue, while the same server without speculation takes thousands.

Fix:
    The number of requests you want to run; a person knows it.

Known problems:
    Without attention DP this is a note: 48 may be what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm is None or ctx.given("max_running_requests") or ctx.open_ended or ctx.server_reported:
        return
    if ctx.architecture == "DeepseekV4ForCausalLM":
        return
    dp = ctx.attention_dp
    divided = dp is not None and dp > 1
    rank = f", {48 // dp} a rank with attention DP {dp}" if dp is not None and dp > 1 else ""
    yield Hit(
        f"no --max-running-requests: with speculation the engine runs 48 requests{rank}",
        fields=("speculative_algorithm",),
        fix_note="give --max-running-requests",
        informs=not divided,
    )


RULE = Rule(
    code="SCH001",
    slug="default-48-requests",
    title="Speculation without a request limit runs 48 requests",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 33199, PR 34290",
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:442,1298",
        "sglang 0.5.12.post1 srt/server_args.py:3697",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --max-running-requests 512 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
)
