"""Flashinfer all-reduce fusion across nodes.

What it checks:
    --enable-flashinfer-allreduce-fusion with tensor parallelism over several nodes.

Why:
    The trtllm form of the fused all-reduce works through peer memory of one node; over nodes the ranks wait for
    ever. The engine limited its default to one node for that reason; newer ones have a multi-node form for
    sm_100.

Fix:
    Take the flag away.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.multi_node or not ctx.on("enable_flashinfer_allreduce_fusion"):
        return
    newer = ctx.sm100 and ctx.within(">=0.5.15") is True
    yield Hit(
        "flashinfer all-reduce fusion with tensor parallelism over several nodes hangs",
        fields=("enable_flashinfer_allreduce_fusion",),
        edits=(unset("enable_flashinfer_allreduce_fusion"),),
        informs=newer,
    )


RULE = Rule(
    code="COM001",
    slug="fusion-across-nodes",
    title="Flashinfer all-reduce fusion across nodes",
    consequence=Consequence.HANG,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang PR 12724",
        "flashinfer-ai/flashinfer issue 2006",
        "sglang 0.5.23 srt/layers/flashinfer_comm_fusion.py:46",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 --nnodes 2 "
        "--node-rank 0 --dist-init-addr node0:20000 --enable-flashinfer-allreduce-fusion",
        version="2025-11",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--enable-flashinfer-allreduce-fusion",
        version="2025-11",
    ),
)
