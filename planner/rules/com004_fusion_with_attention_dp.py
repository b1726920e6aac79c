"""All-reduce fusion has no effect with attention DP.

What it checks:
    --enable-flashinfer-allreduce-fusion together with --enable-dp-attention.

Why:
    With attention DP the all-reduce after attention does not exist in that form; the fused path is skipped for
    every batch.

Fix:
    Take the flag away. Safe: nothing changes in effect.

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
    if ctx.on("enable_flashinfer_allreduce_fusion") and ctx.on("enable_dp_attention"):
        yield Hit(
            "all-reduce fusion has no effect with attention DP",
            fields=("enable_flashinfer_allreduce_fusion",),
            edits=(unset("enable_flashinfer_allreduce_fusion"),),
        )


RULE = Rule(
    code="COM004",
    slug="fusion-with-attention-dp",
    title="All-reduce fusion has no effect with attention DP",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.11 srt/layers/communicator.py:157 (not is_dp_attention_enabled)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --enable-flashinfer-allreduce-fusion --max-running-requests 512",
        hw="b200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--enable-flashinfer-allreduce-fusion --max-running-requests 512",
        hw="b200",
        gpus=8,
    ),
    informs=True,
)
