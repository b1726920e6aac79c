"""The multimodal default is fa3 on Blackwell.

What it checks:
    A vision-language model on sm_100, sm_103 or sm_120 without --mm-attention-backend, on engines of autumn
    2025 and before.

Why:
    The vision tower chose fa3 by itself and raised "The 'fa3' backend is not supported on Blackwell GPUs". No
    flag of the launch is at fault.

Fix:
    Write --mm-attention-backend triton_attn. Safe.

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
    if ctx.facts is None or not ctx.facts.multimodal or not (ctx.sm100 or ctx.sm120):
        return
    if ctx.given("mm_attention_backend") or ctx.on("language_only"):
        return
    yield Hit(
        f"vision-language model on {ctx.where}: this version's default for the vision part is fa3, which "
        "is refused there",
        fields=("model_path",),
        edits=(set_field("mm_attention_backend", "triton_attn"),),
    )


RULE = Rule(
    code="ATT004",
    slug="multimodal-default-fa3",
    title="The multimodal default is fa3 on Blackwell",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 12360",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-VL-4B-Instruct --host 0.0.0.0 --port 8000",
        hw="b200",
        gpus=1,
        version="2025-10",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-VL-4B-Instruct --host 0.0.0.0 --port 8000",
        hw="h100",
        gpus=1,
        version="2025-10",
    ),
    versions="<0.5.6",
)
