"""Garbled output of Kimi-K2 on B200 in July 2025.

What it checks:
    Kimi-K2 in FP8 on sm_100 with engines before 0.4.10.

Why:
    Two parties saw garbled tokens with the flashinfer and triton backends alike on the images of that month.

Fix:
    A newer engine.

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
    if ctx.sm100 and ctx.facts is not None and ctx.facts.id == "kimi-k2":
        yield Hit(f"Kimi-K2 on {ctx.where} gave garbled output on engines of this time", fields=("model_path",))


RULE = Rule(
    code="KNW004",
    slug="kimi-k2-garbage-b200",
    title="Garbled output of Kimi-K2 on B200 in July 2025",
    consequence=Consequence.WRONG_OUTPUT,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 8120",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2-Instruct --tp 8 --trust-remote-code",
        hw="b200",
        gpus=8,
        version="0.4.9.post2",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2-Instruct --tp 8 --ep-size 8 "
        "--trust-remote-code",
        hw="h200",
        gpus=8,
        version="0.4.9.post2",
    ),
    versions="<0.4.10",
)
