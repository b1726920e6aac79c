"""Tensor parallelism is bound by all-reduce on PCIe.

What it checks:
    A mixture-of-experts model with TP of 4 or more and no expert parallelism on a PCIe machine.

Why:
    Every layer reduces over PCIe. Kimi K2.6 on eight RTX PRO 6000 gave 26 tok/s at one request with TP8 and 65
    with EP8.

Fix:
    --ep-size equal to --tp-size; compare both on your machine.

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
    if ctx.pcie and ctx.is_moe and (ctx.tp or 0) >= 4 and ctx.ep == 1 and not ctx.given("moe_a2a_backend"):
        yield Hit(
            f"TP{ctx.tp} over PCIe is bound by all-reduce; expert parallelism was 2.5 times faster for Kimi K2.6 here",
            fields=("tp_size",),
        )


RULE = Rule(
    code="COM010",
    slug="tp-on-pcie",
    title="Tensor parallelism is bound by all-reduce on PCIe",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=("field notes FN-15 and FN-16",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend triton",
        hw="rtx_pro_6000",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --ep-size 8 "
        "--attention-backend triton",
        hw="rtx_pro_6000",
        gpus=8,
    ),
    informs=True,
)
