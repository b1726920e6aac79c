"""An attention backend without CUDA graphs.

What it checks:
    torch_native or flex_attention on a CUDA machine, and speculation beside flex_attention.

Why:
    The engine switches decode graphs off for these with a warning; on B300 graphs are worth a factor of 3.8.
    Speculation with flex_attention is refused.

Fix:
    triton.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.on_cuda:
        return
    for backend in sorted(ctx.asked_attention & {"torch_native", "flex_attention"}):
        refused = backend == "flex_attention" and ctx.speculates
        what = "refuses speculation" if refused else "runs without CUDA graphs"
        yield Hit(
            f"{backend} {what}",
            fields=(ctx.attention_field,),
            edits=(set_field(ctx.attention_field, "triton"),),
            consequence=Consequence.CRASH if refused else None,
        )


RULE = Rule(
    code="ATT018",
    slug="graphless-backend",
    title="An attention backend without CUDA graphs",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/attention_hook.py:125,144,161",
        "field note FN-14 (graphs on against off)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --attention-backend torch_native",
        hw="h100",
        gpus=1,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --attention-backend triton",
        hw="h100",
        gpus=1,
    ),
)
