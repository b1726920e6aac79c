"""The prefill chunk is not a multiple of the page size.

What it checks:
    --chunked-prefill-size above 0 that the page size (asked for, or forced by the backend) does not divide.

Why:
    The engine asserts on it when it checks its arguments, after everything else has been resolved.

Fix:
    Round the chunk down to a multiple.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_FORCED = {"trtllm_mla": 64, "cutedsl_mla": 64, "flashmla": 64, "cutlass_mla": 128, "trtllm_mha": 64}


def _check(ctx: RuleContext) -> Iterator[Hit]:
    chunk, page = ctx.number("chunked_prefill_size"), ctx.number("page_size")
    if page is None:
        forced = [_FORCED[name] for name in ctx.asked_attention if name in _FORCED]
        page = max(forced) if forced and not ctx.unread("page_size") else None
    if chunk is not None and page is not None and chunk > 0 and page > 0 and chunk % page:
        yield Hit(
            f"chunked prefill size {chunk} is not a multiple of the page size {page}",
            fields=("chunked_prefill_size", "page_size"),
            edits=(set_field("chunked_prefill_size", max(page, chunk // page * page)),),
        )


RULE = Rule(
    code="ATT015",
    slug="chunk-page-multiple",
    title="The prefill chunk is not a multiple of the page size",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/validation_hook.py:244",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --page-size 64 --chunked-prefill-size 1000",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --page-size 64 --chunked-prefill-size 1024",
    ),
)
