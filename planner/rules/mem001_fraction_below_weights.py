"""The static fraction does not hold the weights.

What it checks:
    mem_fraction_static times device memory below the least that weights and draft need on a rank, while a
    higher fraction would hold them.

Why:
    The fraction covers weights and cache pools. When the weights alone exceed it the pools come out empty ("Not
    enough memory"), although memory is free: the fraction must be raised, not lowered.

Fix:
    The smallest twentieth that holds the weights with some cache.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.memory import draft_floor_bytes, gib, weight_floor_bytes

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    weights = weight_floor_bytes(ctx)
    fraction = ctx.asked("mem_fraction_static")
    if weights is None or ctx.hardware is None or not isinstance(fraction, (int, float)):
        return
    needed = weights + draft_floor_bytes(ctx)
    memory = ctx.hardware.memory_bytes
    if needed <= fraction * memory or needed > 0.96 * memory:
        return
    enough = next((step / 20 for step in range(1, 20) if step / 20 * memory > 1.03 * needed), None)
    yield Hit(
        f"weights{' and draft' if ctx.speculates else ''} need at least {gib(needed)} a rank; "
        f"{fraction:g} of {gib(memory)} is {gib(fraction * memory)}",
        fields=("mem_fraction_static",),
        edits=(set_field("mem_fraction_static", enough),) if enough else (),
    )


RULE = Rule(
    code="MEM001",
    slug="fraction-below-weights",
    title="The static fraction does not hold the weights",
    consequence=Consequence.OOM,
    status=Status.ESTABLISHED,
    sources=(
        "SemiAnalysisAI/InferenceX qwen3.5_fp4_rtx6000pro_sglang_mtp.sh (0.65 and 0.75 fail, 0.80 works)",
        "sglang 0.5.23 srt/arg_groups/memory_hook.py:276",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.3-70B-Instruct --tp 2 "
        "--mem-fraction-static 0.7",
        hw="h100",
        gpus=2,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.3-70B-Instruct --tp 4 "
        "--mem-fraction-static 0.7",
        hw="h100",
        gpus=4,
    ),
)
