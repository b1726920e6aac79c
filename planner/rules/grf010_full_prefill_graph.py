"""A full prefill graph on sm_120.

What it checks:
    --cuda-graph-backend-prefill full on RTX PRO 6000 or RTX 5090.

Why:
    Replays of full prefill graphs can hang on these cards; the engine calls the backend experimental
    everywhere.

Fix:
    --cuda-graph-backend-prefill breakable, or disabled.

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
    if ctx.sm120 and ctx.text("cuda_graph_backend_prefill") == "full":
        yield Hit(
            f"full prefill graphs are reported to hang on {ctx.where}",
            fields=("cuda_graph_backend_prefill",),
            edits=(set_field("cuda_graph_backend_prefill", "disabled"),),
        )


RULE = Rule(
    code="GRF010",
    slug="full-prefill-graph",
    title="A full prefill graph on sm_120",
    consequence=Consequence.HANG,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang PR 29580",
        "sglang 0.5.23 srt/arg_groups/cuda_graph_hook.py:404",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-backend-prefill full",
        hw="rtx_pro_6000",
        gpus=1,
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-backend-prefill disabled",
        hw="rtx_pro_6000",
        gpus=1,
        version="0.5.16",
    ),
)
