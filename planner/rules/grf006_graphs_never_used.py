"""Graphs are captured for batches that cannot occur.

What it checks:
    The largest captured batch above the requests that one attention-DP rank may run.

Why:
    max_running_requests is divided by the attention-DP size. aiconfigurator 0.12.0 writes a limit of 512 and
    graphs to 512 with attention DP 4: 128 requests a rank can run, and its projection for 176 cannot be
    reached.

Fix:
    Raise max_running_requests to graphs times attention DP, or end the graphs earlier; a person should choose.

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
    graph, running, dp = ctx.number("cuda_graph_max_bs_decode"), ctx.number("max_running_requests"), ctx.attention_dp
    listed = ctx.asked("cuda_graph_bs_decode")
    if isinstance(listed, tuple) and listed:
        graph = max(int(size) for size in listed)
    if graph is None or running is None or dp is None or not ctx.graphs_on:
        return
    ranked = max(1, running // dp)
    if graph > ranked:
        yield Hit(
            f"graphs up to {graph}, but a rank runs at most {ranked} requests ({running} // attention DP {dp})",
            fields=("cuda_graph_max_bs_decode", "cuda_graph_bs_decode"),
        )


RULE = Rule(
    code="GRF006",
    slug="graphs-never-used",
    title="Graphs are captured for batches that cannot occur",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.16 kv_cache_configurator.py:1631 (// attn_dp_size)",
        "aiconfigurator 0.12.0 output for nvidia/Kimi-K2.6-NVFP4 on b300_sxm",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Kimi-K2.6-NVFP4 --tp 4 --dp 4 "
        "--enable-dp-attention --max-running-requests 512 --cuda-graph-max-bs 512",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Kimi-K2.6-NVFP4 --tp 4 --dp 4 "
        "--enable-dp-attention --max-running-requests 2048 --cuda-graph-max-bs 512",
        version="0.5.16",
    ),
    informs=True,
)
