"""FP8 cache with fa3 on MiniMax-M2.

What it checks:
    MiniMax-M2 models with an FP8 KV cache and fa3 attention.

Why:
    On H100 the output was gibberish and normal without the FP8 cache; the report is open.

Fix:
    Leave the cache in BF16, or another attention backend.

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
    dtype = ctx.text("kv_cache_dtype") or ""
    if ctx.architecture == "MiniMaxM2ForCausalLM" and dtype.startswith("fp8") and "fa3" in ctx.asked_attention:
        yield Hit(
            f"{dtype} cache with fa3 on {ctx.model_name}: reported gibberish",
            fields=("kv_cache_dtype",),
            edits=(unset("kv_cache_dtype"),),
        )


RULE = Rule(
    code="ATT014",
    slug="fp8-kv-fa3-minimax",
    title="FP8 cache with fa3 on MiniMax-M2",
    consequence=Consequence.WRONG_OUTPUT,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 20820 (0.5.8 and 0.5.9)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path MiniMaxAI/MiniMax-M2.5 --tensor-parallel-size 4 "
        "--kv-cache-dtype fp8_e4m3 --attention-backend fa3",
        hw="h100",
        gpus=4,
        version="0.5.9",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path MiniMaxAI/MiniMax-M2.5 --tensor-parallel-size 4 "
        "--attention-backend fa3",
        hw="h100",
        gpus=4,
        version="0.5.9",
    ),
)
