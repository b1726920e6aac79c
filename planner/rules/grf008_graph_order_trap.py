"""Memory is planned for graphs that will not run.

What it checks:
    Speculation without --max-running-requests and without a graph limit.

Why:
    The memory hook runs before the speculative default of 48 requests is set, so graphs and memory fraction are
    sized for the tier (512 on B300) although 48 requests run. With the limit given, graphs end at it.

Fix:
    Give --max-running-requests and the graph limit yourself.

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
    given = ("max_running_requests", "cuda_graph_max_bs_decode", "cuda_graph_bs_decode")
    if not ctx.speculates or not ctx.graphs_on or ctx.open_ended or any(ctx.given(name) for name in given):
        return
    yield Hit(
        "graphs and memory are planned before the limit of 48 requests is set; give both numbers",
        fields=("speculative_algorithm",),
    )


RULE = Rule(
    code="GRF008",
    slug="graph-order-trap",
    title="Memory is planned for graphs that will not run",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/memory_hook.py:83,183 (run: mrr unset max_bs 512, mrr 8 bs 1 to 8)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        hw="b300",
        gpus=8,
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --max-running-requests "
        "64 --cuda-graph-max-bs-decode 64 --speculative-algorithm DFLASH --speculative-draft-model-path "
        "drafts/Kimi-K2.6-DFlash",
        hw="b300",
        gpus=8,
        version="0.5.23",
    ),
    informs=True,
    versions=">=0.5.13",
)
