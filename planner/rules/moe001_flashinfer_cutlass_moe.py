"""flashinfer_cutlass experts with weights it does not take.

What it checks:
    --moe-runner-backend flashinfer_cutlass (or flashinfer_cutedsl) with experts stored in block FP8, INT4 or
    MXFP4.

Why:
    flashinfer_cutlass serves modelopt FP4, modelopt FP8 and BF16; flashinfer_cutedsl serves FP4. With block FP8
    the layer has no runner and the first pass fails; with INT4 the engine asserts.

Fix:
    cutlass for FP8; otherwise take the argument away (auto).

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field, unset
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    form = ctx.form_of_weights
    for name in ("moe_runner_backend", "speculative_moe_runner_backend"):
        backend = ctx.text(name)
        if backend not in ("flashinfer_cutlass", "flashinfer_cutedsl") or form is None:
            continue
        if ctx.quantization in ("modelopt_fp4", "modelopt_fp8", "modelopt_mixed", "nvfp4_online"):
            continue
        if form in (WeightForm.NVFP4, WeightForm.BF16) or "nvidia/" in ctx.model_name:
            continue
        fix = set_field(name, "cutlass") if form.is_fp8 and ctx.ep == 1 else unset(name)
        yield Hit(f"{backend} does not serve {form.value} experts", fields=(name,), edits=(fix,))


RULE = Rule(
    code="MOE001",
    slug="flashinfer-cutlass-moe",
    title="flashinfer_cutlass experts with weights it does not take",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 27951",
        "sglang 0.5.23 srt/arg_groups/moe_hook.py:87",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B-Instruct-2507-FP8 "
        "--moe-runner-backend flashinfer_cutlass --tensor-parallel-size 1",
        hw="h200",
        gpus=1,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B-Instruct-2507-FP8 "
        "--moe-runner-backend cutlass --tensor-parallel-size 1",
        hw="h200",
        gpus=1,
    ),
)
