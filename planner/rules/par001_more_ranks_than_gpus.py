"""More ranks than GPUs.

What it checks:
    tp_size times pp_size (times dp_size without attention DP) above the GPUs of the machine or the container's
    request, over all nodes.

Why:
    Each rank needs a GPU of its own; the process of the first missing one fails with "invalid device ordinal".

Fix:
    A person has to choose the sizes.

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
    if ctx.gpus is None or ctx.tp is None or ctx.pp is None or ctx.nnodes is None:
        return
    replicas = 1 if ctx.on("enable_dp_attention") else (ctx.dp or 1)
    if ctx.launcher == "dynamo":
        replicas = 1
    ranks = ctx.tp * ctx.pp * replicas
    if ranks > ctx.gpus * ctx.nnodes and ranks > ctx.gpus:
        parts = f"TP{ctx.tp}" + (f" x PP{ctx.pp}" if ctx.pp > 1 else "") + (f" x DP{replicas}" if replicas > 1 else "")
        over = f" on {ctx.nnodes} nodes" if ctx.nnodes > 1 else ""
        yield Hit(
            f"{parts} needs {ranks} GPUs, {ctx.gpus * ctx.nnodes} are there{over}",
            fields=("tp_size", "dp_size", "pp_size"),
        )


RULE = Rule(
    code="PAR001",
    slug="more-ranks-than-gpus",
    title="More ranks than GPUs",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/entrypoints/engine.py (one scheduler process a rank)",
        "ai-dynamo/enhancements PR 62 (64 GPUs recommended for a user with 8)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8",
        hw="h200",
        gpus=4,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8",
        hw="h200",
        gpus=8,
    ),
)
