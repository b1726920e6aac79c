"""A draft tree on paged attention that only knows chains.

What it checks:
    The EAGLE family with --speculative-eagle-topk above 1 and a page size above 1 (asked for, or forced by the
    backend) on a backend other than flashinfer, fa3 and triton.

Why:
    The engine raises: accepted tokens of a tree are scattered over pages, and only these backends move them.

Fix:
    triton with page size 1, or a chain (topk 1).

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_PAGED = frozenset({"trtllm_mla", "cutedsl_mla", "cutlass_mla", "flashmla", "tokenspeed_mla", "dsa", "nsa"})
_MOVES = frozenset({"flashinfer", "fa3", "triton"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    topk = ctx.number("speculative_eagle_topk")
    if not ctx.eagle_family or topk is None or topk < 2:
        return
    page = ctx.number("page_size") or 1
    asked = ctx.asked_attention
    by_default = ctx.sm100 and ctx.is_mla and not asked and not ctx.unread("attention_backend")
    stuck = asked & _PAGED or ({"trtllm_mla"} if by_default else set())
    if page > 1:
        stuck = set(stuck) | (asked - _MOVES - {"trtllm_mha"})
    if stuck:
        yield Hit(
            f"topk {topk} on {', '.join(sorted(stuck))}, which keeps pages of more than one token",
            fields=("speculative_eagle_topk", ctx.attention_field),
            edits=(set_field("attention_backend", "triton"), set_field("page_size", 1)),
        )


RULE = Rule(
    code="ATT007",
    slug="wide-tree-paged",
    title="A draft tree on paged attention that only knows chains",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:1271",
        "sglang 0.5.12.post1 srt/server_args.py:3837",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend "
        "trtllm_mla --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 4 "
        "--speculative-num-draft-tokens 16",
        hw="b200",
        gpus=8,
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend "
        "triton --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 4 "
        "--speculative-num-draft-tokens 16",
        hw="b200",
        gpus=8,
        version="0.5.23",
    ),
)
