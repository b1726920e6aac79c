"""Fewer visible GPUs than ranks.

What it checks:
    CUDA_VISIBLE_DEVICES set for the server with fewer entries than tp_size times pp_size on one node.

Why:
    The engine counts devices after the mask; the first rank without one fails with "invalid device ordinal".

Fix:
    List as many GPUs as there are ranks.

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
    visible = ctx.env_value("CUDA_VISIBLE_DEVICES")
    if not visible or ctx.tp is None or ctx.pp is None or ctx.nnodes != 1 or not ctx.on_cuda:
        return
    parts = [part.strip() for part in visible.split(",")]
    if not all(part.isdigit() for part in parts):
        return
    ranks = ctx.tp * ctx.pp
    if len(set(parts)) < ranks:
        yield Hit(
            f"CUDA_VISIBLE_DEVICES lists {len(set(parts))} GPUs for {ranks} ranks",
            fields=("$CUDA_VISIBLE_DEVICES", "tp_size"),
        )


RULE = Rule(
    code="PAR009",
    slug="visible-devices",
    title="Fewer visible GPUs than ranks",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "NVIDIA CUDA C++ Programming Guide, CUDA environment variables",
        "sglang 0.5.23 srt/entrypoints/engine.py (gpu id of each rank)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "CUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 4",
    ),
    good=Example(
        "CUDA_VISIBLE_DEVICES=0,1,2,3 python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 4",
    ),
)
