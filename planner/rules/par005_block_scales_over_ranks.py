"""Block-scaled weights do not divide over the ranks.

What it checks:
    FP8 weights with 128 x 128 blocks whose feed-forward width a rank (after tensor and expert parallelism) is
    not a multiple of 128.

Why:
    One scale stands for a block of 128; a rank that gets part of a block has no scale for it. Loading fails
    with "output_size ... is not divisible by weight quantization block_n = 128".

Fix:
    Expert parallelism keeps experts whole (--ep-size), or a smaller --tp-size.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]

_BLOCK = 128


def _check(ctx: RuleContext) -> Iterator[Hit]:
    facts = ctx.facts
    if facts is None or ctx.form_of_weights is not WeightForm.FP8_BLOCK or ctx.tp is None or ctx.ep is None:
        return
    if ctx.given("moe_a2a_backend"):
        return
    if facts.expert_ffn and ctx.tp % ctx.ep == 0:
        ranks = ctx.tp // ctx.ep
        if facts.expert_ffn % ranks == 0 and (facts.expert_ffn // ranks) % _BLOCK:
            yield Hit(
                f"expert width {facts.expert_ffn} over {ranks} ranks is {facts.expert_ffn // ranks}, "
                f"not a multiple of the {_BLOCK} x {_BLOCK} scale block",
                fields=("tp_size", "ep_size"),
                edits=(set_field("ep_size", ctx.tp),),
            )
    dense = facts.dense_ffn
    if dense and ctx.number("moe_dense_tp_size") is None and dense % ctx.tp == 0 and (dense // ctx.tp) % _BLOCK:
        yield Hit(
            f"dense width {dense} over {ctx.tp} ranks is {dense // ctx.tp}, not a multiple of {_BLOCK}",
            fields=("tp_size",),
            edits=(set_field("moe_dense_tp_size", 1),),
            safe=False,
        )


RULE = Rule(
    code="PAR005",
    slug="block-scales-over-ranks",
    title="Block-scaled weights do not divide over the ranks",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/layers/quantization/fp8.py:1591,1599, fp8_utils.py:2891",
        "sgl-project/sglang issue 3345 (18432 / 32), issue 26107",
        "ROCm/ATOM PR 1488 (1536 / 8 = 192)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path MiniMaxAI/MiniMax-M2.5 --tp 8",
        hw="h200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path MiniMaxAI/MiniMax-M2.5 --tp 8 --ep-size 8",
        hw="h200",
        gpus=8,
    ),
)
