"""The weights do not fit at any fraction.

What it checks:
    The least that weights and draft need on a rank above 96 % of the device memory.

Why:
    No mem_fraction_static can hold them. Lowering it, the usual advice for out-of-memory, cannot help.

Fix:
    More GPUs (a larger --tp-size), or a smaller storage of the weights; a person has to choose.

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
    weights = weight_floor_bytes(ctx)
    if weights is None or ctx.hardware is None:
        return
    needed, memory = weights + draft_floor_bytes(ctx), ctx.hardware.memory_bytes
    if needed > 0.96 * memory:
        yield Hit(
            f"weights{' and draft' if ctx.speculates else ''} need at least {gib(needed)} a rank, "
            f"a GPU has {gib(memory)}: no fraction fits",
            fields=("tp_size", "model_path"),
        )


RULE = Rule(
    code="MEM002",
    slug="no-fraction-fits",
    title="The weights do not fit at any fraction",
    consequence=Consequence.OOM,
    status=Status.ESTABLISHED,
    sources=(
        "deepseek-ai/DeepSeek-R1 model card (671B parameters in FP8)",
        "sglang 0.5.23 srt/arg_groups/memory_hook.py:276",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 4",
        hw="h100",
        gpus=4,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8",
        hw="h200",
        gpus=8,
    ),
)
