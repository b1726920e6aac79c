"""A static fraction that leaves almost nothing.

What it checks:
    mem_fraction_static of 0.97 or more, or graphs and verify rows that do not fit into what is left on B300
    class machines at 0.93 and above.

Why:
    Graphs, activations, NCCL buffers and the CUDA context live outside the fraction. At 0.93 on B300 jobs
    needed 4.2 to 6.1 GiB and had 2.9 to 4.8; they looked hung and were out of memory.

Fix:
    0.9 or less. Published recipes of DeepSeek-R1 without speculation run at 0.95.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    fraction = ctx.asked("mem_fraction_static")
    if not isinstance(fraction, (int, float)) or not ctx.on_cuda:
        return
    if fraction >= 1 or fraction <= 0:
        yield Hit(
            f"mem_fraction_static {fraction:g} is not a fraction between 0 and 1",
            fields=("mem_fraction_static",),
            edits=(unset("mem_fraction_static"),),
        )
    elif fraction >= 0.93:
        yield Hit(
            f"mem_fraction_static {fraction:g} leaves little for graphs, activations and NCCL",
            fields=("mem_fraction_static",),
            edits=(set_field("mem_fraction_static", 0.9),),
            informs=fraction < 0.97,
        )


RULE = Rule(
    code="MEM007",
    slug="fraction-too-high",
    title="A static fraction that leaves almost nothing",
    consequence=Consequence.OOM,
    status=Status.SUSPECTED,
    sources=(
        "SemiAnalysisAI/InferenceX PR 2226 (B300 at .93)",
        "sglang 0.5.23 srt/arg_groups/memory_hook.py:276",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --mem-fraction-static 0.98",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --mem-fraction-static 0.88",
        hw="b300",
        gpus=8,
    ),
)
