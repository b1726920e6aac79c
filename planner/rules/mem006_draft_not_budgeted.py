"""The cache pool is sized before the draft is loaded.

What it checks:
    Engines before the three-phase start (April 2026): static fraction of memory, draft weights and the draft's
    share of cache together above the device memory.

Why:
    The pool took the whole fraction beside the target; draft weights and draft cache came on top. With a draft
    as large as the target every fraction from 0.5 on ran out of memory.

Fix:
    A lower fraction, or a newer engine.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext
from planner.rules.memory import draft_floor_bytes, gib, weight_floor_bytes

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    weights, draft = weight_floor_bytes(ctx), draft_floor_bytes(ctx)
    fraction = ctx.asked("mem_fraction_static")
    if weights is None or not draft or ctx.hardware is None or not isinstance(fraction, (int, float)):
        return
    if not ctx.given("speculative_draft_model_path"):
        return
    memory = ctx.hardware.memory_bytes
    pool = max(0.0, fraction * memory - weights)
    needed = fraction * memory + draft + pool * min(1.0, draft / weights)
    if needed > 0.97 * memory:
        yield Hit(
            f"{fraction:g} of memory, the draft's {gib(draft)} and its cache make {gib(needed)} of {gib(memory)}: "
            "this version does not budget the draft",
            fields=("mem_fraction_static", "speculative_draft_model_path"),
        )


RULE = Rule(
    code="MEM006",
    slug="draft-not-budgeted",
    title="The cache pool is sized before the draft is loaded",
    consequence=Consequence.OOM,
    status=Status.ESTABLISHED,
    sources=("sgl-project/sglang issue 6875, PR 23862",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model meta-llama/Llama-3.3-70B-Instruct --tp 8 "
        "--speculative-algorithm STANDALONE --speculative-draft-model-path "
        "meta-llama/Llama-3.1-70B-Instruct --mem-fraction-static 0.6",
        hw="h100",
        gpus=8,
        version="2025-06",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model meta-llama/Llama-3.3-70B-Instruct --tp 8 "
        "--speculative-algorithm STANDALONE --speculative-draft-model-path "
        "meta-llama/Llama-3.2-1B-Instruct --mem-fraction-static 0.6",
        hw="h100",
        gpus=8,
        version="2025-06",
    ),
    versions="<0.5.11",
)
