"""The all-to-all backend sets the expert-parallel size itself.

What it checks:
    --ep-size other than tp_size beside an all-to-all backend (deepep, mooncake, nixl, megamoe, flashinfer).

Why:
    These backends run with ep_size equal to tp_size; the engine overwrites the argument with a line in the log.

Fix:
    Write the size that runs. Safe.

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
    backend = ctx.text("moe_a2a_backend")
    if backend in (None, "none") or not ctx.given("ep_size") or ctx.tp is None or ctx.ep is None:
        return
    if ctx.ep != ctx.tp:
        yield Hit(
            f"{backend} runs with expert parallel size {ctx.tp}, not {ctx.ep}",
            fields=("ep_size",),
            edits=(set_field("ep_size", ctx.tp),),
        )


RULE = Rule(
    code="PAR010",
    slug="ep-overridden",
    title="The all-to-all backend sets the expert-parallel size itself",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/overrides.py:1611 (run: ep 4 becomes 8)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 4 "
        "--moe-a2a-backend deepep",
        hw="h200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 8 "
        "--moe-a2a-backend deepep",
        hw="h200",
        gpus=8,
    ),
)
