"""FP8 weights or cache on a GPU without FP8 units.

What it checks:
    FP8 checkpoints or an FP8 cache on Ampere (sm_80, sm_86).

Why:
    FP8 units came with sm_89. Block FP8 weights fail on Ampere; per-tensor FP8 runs through Marlin as
    weight-only. fa3 and flashinfer do not read an FP8 cache there.

Fix:
    A BF16 or INT4 checkpoint; a BF16 cache.

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
    if ctx.sm is None or ctx.sm >= 89 or not ctx.on_cuda:
        return
    form = ctx.form_of_weights
    if form is not None and form.is_fp8:
        yield Hit(f"FP8 weights on {ctx.where}, which has no FP8 units", fields=("quantization", "model_path"))
    dtype = ctx.text("kv_cache_dtype") or ""
    if dtype == "fp8_e4m3":
        yield Hit(
            f"{dtype} cache on {ctx.where}, which has no FP8 units",
            fields=("kv_cache_dtype",),
            edits=(unset("kv_cache_dtype"),),
        )


RULE = Rule(
    code="QNT003",
    slug="fp8-machine",
    title="FP8 weights or cache on a GPU without FP8 units",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 3345 (A100 does not support FP8 block weights)",
        "NVIDIA A100 data sheet (no FP8)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B-FP8 --tp 8 --ep-size 8",
        hw="a100",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --ep-size 8",
        hw="a100",
        gpus=8,
    ),
)
