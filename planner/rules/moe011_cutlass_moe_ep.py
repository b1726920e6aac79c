"""An expert backend with an expert-parallel size it does not take.

What it checks:
    flashinfer_cutlass or flashinfer_cutedsl with an ep_size that is neither 1 nor tp_size, and cutlass FP8
    experts with any ep_size above 1.

Why:
    The engine asserts on both.

Fix:
    ep_size equal to tp_size for the flashinfer backends, 1 for cutlass FP8.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.tp is None or ctx.ep is None or ctx.given("moe_a2a_backend"):
        return
    backend, form = ctx.text("moe_runner_backend"), ctx.form_of_weights
    if backend in ("flashinfer_cutlass", "flashinfer_cutedsl") and ctx.ep not in (1, ctx.tp):
        yield Hit(
            f"{backend} takes expert parallelism of 1 or {ctx.tp}, not {ctx.ep}",
            fields=("ep_size", "moe_runner_backend"),
            edits=(set_field("ep_size", ctx.tp),),
        )
    if backend == "cutlass" and form is not None and form.is_fp8 and ctx.ep > 1:
        yield Hit(
            f"cutlass FP8 experts run without expert parallelism only, not with {ctx.ep}",
            fields=("ep_size", "moe_runner_backend"),
            edits=(unset("moe_runner_backend"),),
        )


RULE = Rule(
    code="MOE011",
    slug="cutlass-moe-ep",
    title="An expert backend with an expert-parallel size it does not take",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/moe_hook.py:92,105,161",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/DeepSeek-R1-0528-NVFP4 --tp 8 --ep-size 4 "
        "--quantization modelopt_fp4 --moe-runner-backend flashinfer_cutlass",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/DeepSeek-R1-0528-NVFP4 --tp 8 --ep-size 8 "
        "--quantization modelopt_fp4 --moe-runner-backend flashinfer_cutlass",
    ),
)
