"""Fusion is on by default across nodes.

What it checks:
    DeepSeek-V3-type models with tensor parallelism over several nodes on 0.5.4 and 0.5.5.

Why:
    These releases switched all-reduce fusion on by themselves without looking at the number of nodes; the
    change that limited it to one node came right after. A report of a crash at the first request fits the
    window.

Fix:
    Another release, or attention DP, which keeps the fusion off.

Known problems:
    That the report has this cause is an inference.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.multi_node or ctx.on("enable_dp_attention") or ctx.sm120:
        return
    big = ctx.tp is not None and ctx.tp > 8 and ctx.facts is None
    if ctx.architecture in ("DeepseekV3ForCausalLM", "GptOssForCausalLM") or big:
        yield Hit(
            "this version switches all-reduce fusion on by itself, over several nodes too",
            fields=("nnodes", "tp_size"),
        )


RULE = Rule(
    code="COM005",
    slug="fusion-default-across-nodes",
    title="Fusion is on by default across nodes",
    consequence=Consequence.HANG,
    status=Status.SUSPECTED,
    sources=(
        "sglang 0.5.5 srt/server_args.py:900",
        "sgl-project/sglang PR 12724",
        "sgl-project/sglang issue 13392",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3.1 --quantization fp8 "
        "--tensor-parallel-size 16 --dist-init-addr leader:20000 --nnodes 2 --node-rank 0",
        version="0.5.5",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3.1 --quantization fp8 "
        "--tensor-parallel-size 16 --dist-init-addr leader:20000 --nnodes 2 --node-rank 0",
        version="0.5.6",
    ),
    versions=">=0.5.4,<0.5.6",
)
