"""DeepEP's normal mode runs without CUDA graphs.

What it checks:
    --deepep-mode normal on a server that decodes.

Why:
    The normal dispatch cannot be captured; decode graphs are off or fail. It is meant for prefill servers.

Fix:
    auto, which uses low latency for decoding.

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
    if ctx.text("deepep_mode") != "normal" or ctx.text("moe_a2a_backend") != "deepep":
        return
    if ctx.graphs_on and ctx.text("disaggregation_mode") != "prefill" and ctx.role != "prefill":
        yield Hit(
            "DeepEP's normal mode has no CUDA graphs for decoding",
            fields=("deepep_mode",),
            edits=(set_field("deepep_mode", "auto"),),
        )


RULE = Rule(
    code="MOE015",
    slug="deepep-normal-graphs",
    title="DeepEP's normal mode runs without CUDA graphs",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang PR 4767 (mode description)",
        "sgl-project/sglang issue 6017",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 8 "
        "--moe-a2a-backend deepep --deepep-mode normal",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 8 "
        "--moe-a2a-backend deepep --deepep-mode normal --disaggregation-mode prefill",
    ),
)
