"""An FP8 cache under a DFLASH draft.

What it checks:
    DFLASH on a latent-attention target with an FP8 cache, on engines before the draft cache got its own type.

Why:
    The draft's attention (fa4) does not read the target's FP8 cache; verify crashes. PR 29218 gives the draft a
    BF16 cache.

Fix:
    A newer engine, or --kv-cache-dtype bf16.

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
    dtype = ctx.text("kv_cache_dtype") or ""
    if ctx.algorithm == "DFLASH" and ctx.is_mla and dtype.startswith("fp8"):
        yield Hit(
            f"{dtype} cache under a DFLASH draft crashes at verify on this version",
            fields=("kv_cache_dtype",),
            edits=(set_field("kv_cache_dtype", "bf16"),),
        )


RULE = Rule(
    code="SCH010",
    slug="draft-kv-dtype",
    title="An FP8 cache under a DFLASH draft",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang PR 29218 (merged after 2026-06-24)",
        "sglang 0.5.23 srt/mem_cache/kv_cache_configurator.py:1202",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path model/Kimi-K2.6-NVFP4 --tp 4 --max-running-requests"
        " 64 --disable-radix-cache --kv-cache-dtype fp8_e4m3 --speculative-algorithm DFLASH "
        "--speculative-draft-model-path model/Kimi_K2.6_DFlash_v2",
        hw="b300",
        gpus=4,
        version="0.5.12.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path model/Kimi-K2.6-NVFP4 --tp 4 --max-running-requests"
        " 64 --disable-radix-cache --kv-cache-dtype fp8_e4m3 --speculative-algorithm DFLASH "
        "--speculative-draft-model-path model/Kimi_K2.6_DFlash_v2",
        hw="b300",
        gpus=4,
        version="0.5.23",
    ),
    versions=">=0.5.11,<0.5.16",
)
