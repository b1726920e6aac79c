"""flashinfer_trtllm experts outside sm_100.

What it checks:
    --moe-runner-backend flashinfer_trtllm (or its routed form) on anything but sm_100 and sm_103.

Why:
    The trtllm-gen expert kernels exist for sm_100 and sm_103 only. The engine does not check this: it accepts
    the argument on sm_120 and fails later.

Fix:
    flashinfer_cutlass for FP4 on sm_120; otherwise take the argument away.

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

_TRTLLM = frozenset({"flashinfer_trtllm", "flashinfer_trtllm_routed", "experimental_sgl_trtllm"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.sm is None or ctx.sm100 or not ctx.on_cuda:
        return
    for name in ("moe_runner_backend", "speculative_moe_runner_backend"):
        backend = ctx.text(name)
        if backend not in _TRTLLM:
            continue
        four_bit = ctx.form_of_weights is WeightForm.NVFP4 and ctx.sm120
        yield Hit(
            f"{backend} experts have no kernel for {ctx.where}",
            fields=(name,),
            edits=(set_field(name, "flashinfer_cutlass") if four_bit else unset(name),),
        )


RULE = Rule(
    code="MOE003",
    slug="trtllm-moe-machine",
    title="flashinfer_trtllm experts outside sm_100",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/overrides.py:1520 (comment) and a run of its resolution on "
        "emulated sm_120, which accepts it",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 4 "
        "--quantization modelopt_fp4 --attention-backend triton --moe-runner-backend flashinfer_trtllm",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 4 "
        "--quantization modelopt_fp4 --attention-backend triton --moe-runner-backend flashinfer_cutlass",
        hw="rtx_pro_6000",
        gpus=4,
    ),
)
