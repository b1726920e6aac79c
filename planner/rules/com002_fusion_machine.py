"""All-reduce fusion on a GPU that it does not support.

What it checks:
    Flashinfer all-reduce fusion asked for on sm_120 or on GPUs before Hopper.

Why:
    The kernels are built for sm_90 and sm_100 families only. Stock engines from 0.5.8 on leave the flag without
    effect there; nothing is fused and nothing is said.

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
    if ctx.sm is None or ctx.sm100 or ctx.sm == 90 or not ctx.on_cuda:
        return
    for name in ("enable_flashinfer_allreduce_fusion", "flashinfer_allreduce_fusion_backend"):
        if ctx.given(name):
            yield Hit(
                f"all-reduce fusion is not supported on {ctx.where}: stock engines ignore {ctx.flag_text(name)}",
                fields=(name,),
                edits=(unset(name),),
            )


RULE = Rule(
    code="COM002",
    slug="fusion-machine",
    title="All-reduce fusion on a GPU that it does not support",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.11 srt/layers/communicator.py:157",
        "sglang 0.5.23 srt/layers/flashinfer_comm_fusion.py:46",
        "sgl-project/sglang PR 32330",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --attention-backend "
        "triton --enable-flashinfer-allreduce-fusion",
        hw="rtx_pro_6000",
        gpus=8,
        version="0.5.12.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --attention-backend "
        "triton --enable-flashinfer-allreduce-fusion",
        hw="h200",
        gpus=8,
        version="0.5.12.post1",
    ),
)
