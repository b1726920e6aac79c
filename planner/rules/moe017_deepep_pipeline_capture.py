"""DeepEP's low-latency buffers are made during capture with pipeline parallelism.

What it checks:
    DeepEP with --pp-size above 1 and decode graphs on, unless the normal mode is named.

Why:
    With several pipeline stages the buffers are first made while the decode graph is captured, which CUDA
    forbids there; capture fails. The report is open.

Fix:
    --pp-size 1, or graphs off; a person should choose.

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
    if ctx.text("moe_a2a_backend") != "deepep" or ctx.pp is None or ctx.pp <= 1 or not ctx.graphs_on:
        return
    if ctx.text("deepep_mode") != "normal" and ctx.text("disaggregation_mode") != "prefill":
        yield Hit(
            f"DeepEP with {ctx.pp} pipeline stages fails in graph capture",
            fields=("pp_size", "moe_a2a_backend"),
        )


RULE = Rule(
    code="MOE017",
    slug="deepep-pipeline-capture",
    title="DeepEP's low-latency buffers are made during capture with pipeline parallelism",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 29942",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --pp-size 2 --nnodes 2 "
        "--node-rank 0 --dist-init-addr node0:20000 --dp 8 --enable-dp-attention --ep-size 8 "
        "--moe-a2a-backend deepep --max-running-requests 256",
        hw="h200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --dp 8 "
        "--enable-dp-attention --ep-size 8 --moe-a2a-backend deepep --max-running-requests 256",
        hw="h200",
        gpus=8,
    ),
)
