"""A cache type that trtllm_mla does not read.

What it checks:
    trtllm_mla with a KV cache other than fp8_e4m3, bf16 and auto.

Why:
    The engine raises "TensorRT-LLM MLA backend only supports kv-cache-dtype of ...".

Fix:
    fp8_e4m3, which is as small.

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
    dtype = ctx.text("kv_cache_dtype")
    if dtype in (None, "auto", "bf16", "bfloat16", "fp8_e4m3", "fp4_e2m1") or not ctx.on_cuda:
        return
    if ctx.asked_attention & {"trtllm_mla", "tokenspeed_mla"}:
        yield Hit(
            f"trtllm_mla does not read a cache of {dtype}",
            fields=("kv_cache_dtype",),
            edits=(set_field("kv_cache_dtype", "fp8_e4m3"),),
        )


RULE = Rule(
    code="ATT020",
    slug="trtllm-mla-cache-type",
    title="A cache type that trtllm_mla does not read",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/overrides.py:1216",
        "sglang 0.5.12.post1 srt/server_args.py:2730 (fp4_e2m1 too)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend "
        "trtllm_mla --kv-cache-dtype fp8_e5m2",
        hw="b200",
        gpus=8,
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend "
        "trtllm_mla --kv-cache-dtype fp8_e4m3",
        hw="b200",
        gpus=8,
        version="0.5.23",
    ),
)
