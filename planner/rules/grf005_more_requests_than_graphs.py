"""More requests may run than graphs are captured for.

What it checks:
    --max-running-requests (per attention-DP rank; the default of 48 with speculation) above the largest
    captured decode batch.

Why:
    A batch above the largest graph runs without graphs: on B300 one such step costs 3.8 times as much.
    Throughput falls when load rises.

Fix:
    Capture up to the number of requests. It costs memory for each graph.

Known problems:
    Where both numbers are given, or within a factor of 4, this is a note: a recipe may trade graph memory for the rare
    peak.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.graphs_on or ctx.unread("max_running_requests") or ctx.attention_dp is None:
        return
    if ctx.text("disaggregation_mode") == "prefill" or ctx.role == "prefill":
        return
    graph, running = ctx.number("cuda_graph_max_bs_decode"), ctx.number("max_running_requests")
    listed = ctx.asked("cuda_graph_bs_decode")
    if isinstance(listed, tuple) and listed:
        graph = max(int(size) for size in listed)
    if graph is None:
        return
    default = running is None
    if running is None:
        if not ctx.speculates:
            return
        running = 48
    ranked = max(1, running // ctx.attention_dp)
    if ranked > graph:
        which = "the default of 48" if default else f"{ranked}"
        yield Hit(
            f"{which} requests a rank may run, graphs end at {graph}: larger batches run without graphs",
            fields=("cuda_graph_max_bs_decode", "cuda_graph_bs_decode"),
            edits=(set_field("cuda_graph_max_bs_decode", ranked),) if not isinstance(listed, tuple) else (),
            informs=not default or ranked < 4 * graph,
        )


RULE = Rule(
    code="GRF005",
    slug="more-requests-than-graphs",
    title="More requests may run than graphs are captured for",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=(
        "field note FN-14 (graphs worth 3.8x)",
        "sgl-project/sglang issue 5491 (100 requests, graphs to 8)",
        "sglang 0.5.23 srt/arg_groups/memory_hook.py:183",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/QwQ-32B --tp 2 --cuda-graph-max-bs 8 "
        "--max-running-requests 100",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/QwQ-32B --tp 2 --cuda-graph-max-bs 100 "
        "--max-running-requests 100",
    ),
)
