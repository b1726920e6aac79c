"""Gated-delta-net projections in block FP8 do not split.

What it checks:
    Qwen3.5 FP8 checkpoints with tensor parallelism above 1 on engines before 0.5.9.

Why:
    The small projections of the gated delta net (one row a head) were split like other layers; a rank got 8
    rows of a 128-row scale block, and loading failed.

Fix:
    A newer engine.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.facts is None or ctx.facts.hybrid != "gdn" or not (ctx.architecture or "").startswith("Qwen3_5"):
        return
    if ctx.form_of_weights is WeightForm.FP8_BLOCK and (ctx.tp or 1) > 1:
        yield Hit(
            f"this version splits the gated-delta-net projections of {ctx.model_name} below the FP8 block",
            fields=("tp_size",),
            informs=ctx.within("<0.5.9") is not True,
        )


RULE = Rule(
    code="PAR014",
    slug="gdn-block-scales",
    title="Gated-delta-net projections in block FP8 do not split",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sgl-project/sglang issue 19045 (0.5.8.post1, TP8 on H20)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-397B-A17B-FP8 --tensor-parallel-size 8"
        " --max-running-requests 8",
        hw="h20",
        gpus=8,
        version="0.5.8.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-397B-A17B-FP8 --tensor-parallel-size 8"
        " --max-running-requests 8",
        hw="h20",
        gpus=8,
        version="0.5.12",
    ),
    versions="<0.5.9",
)
