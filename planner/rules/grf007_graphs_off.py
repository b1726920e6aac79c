"""CUDA graphs are switched off.

What it checks:
    --disable-cuda-graph on a CUDA machine.

Why:
    Each decode step then pays the launch of every kernel: 111 against 285 tok/s at one request on B300 (a
    factor of 3.8 in a direct comparison).

Fix:
    Take the switch away, unless a known crash in capture is being avoided; a person should look.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.on("disable_cuda_graph") and ctx.on_cuda and ctx.hardware is not None and not ctx.on("enable_mis"):
        if ctx.text("disaggregation_mode") == "prefill" or ctx.role == "prefill":
            return
        yield Hit(
            "CUDA graphs are off: small batches run several times slower",
            fields=("disable_cuda_graph",),
            edits=(unset("disable_cuda_graph"),),
            safe=False,
            informs=ctx.hardware is None,
        )


RULE = Rule(
    code="GRF007",
    slug="graphs-off",
    title="CUDA graphs are switched off",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=("field notes FN-08 and FN-14",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --disable-cuda-graph",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8",
        hw="b300",
        gpus=8,
    ),
)
