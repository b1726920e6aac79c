"""The custom all-reduce is left on for more than two PCIe GPUs.

What it checks:
    TP above 2 on a PCIe machine without --disable-custom-all-reduce.

Why:
    The custom all-reduce reads peer memory directly; over PCIe the engine uses it for two GPUs and must test
    peers first. Published commands for these machines switch it off.

Fix:
    --disable-custom-all-reduce. Safe.

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
    if ctx.pcie and ctx.on_cuda and (ctx.tp or 0) > 2 and not ctx.on("disable_custom_all_reduce"):
        yield Hit(
            f"{ctx.tp} PCIe GPUs: published launches for {ctx.where} use --disable-custom-all-reduce",
            fields=("tp_size",),
            edits=(set_field("disable_custom_all_reduce", True),),
        )


RULE = Rule(
    code="COM009",
    slug="custom-allreduce-on-pcie",
    title="The custom all-reduce is left on for more than two PCIe GPUs",
    consequence=Consequence.SILENT,
    status=Status.SUSPECTED,
    sources=(
        "SemiAnalysisAI/InferenceX qwen3.5_fp4_rtx6000pro_sglang_mtp.sh",
        "rtx6kpro GLM-5 page",
        "sglang 0.5.23 srt/distributed/device_communicators/custom_all_reduce.py",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "NCCL_IB_DISABLE=1 python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --attention-backend triton --quantization modelopt_fp4",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    good=Example(
        "NCCL_IB_DISABLE=1 python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --attention-backend triton --quantization modelopt_fp4 "
        "--disable-custom-all-reduce",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    informs=True,
)
