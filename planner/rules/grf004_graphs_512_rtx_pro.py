"""Decode graphs up to 512 requests on RTX PRO 6000.

What it checks:
    sm_120 with decode graphs captured up to 512 requests, asked for or by default for TP4 and more without a
    request limit.

Why:
    The engine's memory tier gives 512 on these cards; capture ran out of memory there, and a later engine caps
    the default at 256.

Fix:
    --cuda-graph-max-bs 256, or fewer.

Known problems:
    As the default this is a note: published launches without the flag ran.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if (
        not ctx.sm120
        or not ctx.graphs_on
        or ctx.unread("cuda_graph_max_bs_decode")
        or ctx.given("cuda_graph_bs_decode")
    ):
        return
    graph, running = ctx.number("cuda_graph_max_bs_decode"), ctx.number("max_running_requests")
    if graph is None:
        default = (ctx.tp or 0) >= 4 and running is None and not ctx.unread("max_running_requests")
        graph = 512 if default and not ctx.speculates and ctx.within(">=0.5.15") is not True else 0
    if running is not None and running < 512:
        return
    if graph >= 512:
        yield Hit(
            f"decode graphs up to {graph} requests on {ctx.where}: capture is reported to run out of memory",
            fields=("cuda_graph_max_bs_decode", "max_running_requests"),
            edits=(set_field("cuda_graph_max_bs_decode", 256),),
            informs=not ctx.given("cuda_graph_max_bs_decode"),
        )


RULE = Rule(
    code="GRF004",
    slug="graphs-512-rtx-pro",
    title="Decode graphs up to 512 requests on RTX PRO 6000",
    consequence=Consequence.OOM,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang PR 29580",
        "sglang 0.5.23 srt/arg_groups/memory_hook.py:90 (tiers)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --attention-backend "
        "triton --cuda-graph-max-bs 512 --max-running-requests 512",
        hw="rtx_pro_6000",
        gpus=8,
        version="0.5.12.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --attention-backend "
        "triton --cuda-graph-max-bs 128 --max-running-requests 128",
        hw="rtx_pro_6000",
        gpus=8,
        version="0.5.12.post1",
    ),
)
