"""flashinfer_mxfp4 experts outside sm_100.

What it checks:
    --moe-runner-backend flashinfer_mxfp4 on sm_120 or on GPUs older than Hopper.

Why:
    The kernels (trtllm-gen) are built for sm_100 and sm_103; loading fails right after the weights are
    shuffled.

Fix:
    Take the argument away: auto chooses triton there.

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
    if ctx.text("moe_runner_backend") == "flashinfer_mxfp4" and ctx.sm is not None and not (ctx.sm100 or ctx.sm == 90):
        yield Hit(
            f"flashinfer_mxfp4 experts have no kernel for {ctx.where}",
            fields=("moe_runner_backend",),
            edits=(unset("moe_runner_backend"),),
        )


RULE = Rule(
    code="MOE002",
    slug="mxfp4-moe-machine",
    title="flashinfer_mxfp4 experts outside sm_100",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 13061",
        "sglang 0.5.23 srt/arg_groups/overrides.py:1521",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-20b --moe-runner-backend flashinfer_mxfp4",
        hw="rtx_5090",
        gpus=1,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-20b --moe-runner-backend flashinfer_mxfp4",
        hw="b200",
        gpus=1,
    ),
)
