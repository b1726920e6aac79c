"""A dense tensor-parallel size that is not offered.

What it checks:
    --moe-dense-tp-size other than 1 and tp_size.

Why:
    The engine asserts: dense layers are either split over all ranks or kept whole.

Fix:
    1, the value for large expert parallelism.

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
    size = ctx.number("moe_dense_tp_size")
    if size is not None and ctx.tp is not None and size not in (1, ctx.tp):
        yield Hit(
            f"--moe-dense-tp-size {size}: only 1 or {ctx.tp} is taken",
            fields=("moe_dense_tp_size",),
            edits=(set_field("moe_dense_tp_size", 1),),
        )


RULE = Rule(
    code="PAR012",
    slug="dense-tp",
    title="A dense tensor-parallel size that is not offered",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/validation_hook.py:180",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --moe-dense-tp-size 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --moe-dense-tp-size 1",
    ),
)
