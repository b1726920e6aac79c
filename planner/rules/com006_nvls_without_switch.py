"""NVLS on links without a switch.

What it checks:
    --enable-nccl-nvls (or NCCL_NVLS_ENABLE=1 set for the server) on a machine whose GPUs are not joined by an
    NVLink switch.

Why:
    NVLink SHARP reduces in the NVSwitch. The engine sets the variable without looking at the machine; on PCIe
    NCCL finds no such link and goes on without it.

Fix:
    Take the flag away. Safe: nothing changes in effect.

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
    if ctx.hardware is None or ctx.hardware.nvls or not ctx.on_cuda:
        return
    if ctx.on("enable_nccl_nvls"):
        yield Hit(
            f"{ctx.where} has no NVLink switch: --enable-nccl-nvls has no effect",
            fields=("enable_nccl_nvls",),
            edits=(unset("enable_nccl_nvls"),),
        )
    elif ctx.env_value("NCCL_NVLS_ENABLE") == "1":
        yield Hit(
            f"{ctx.where} has no NVLink switch: NCCL_NVLS_ENABLE=1 has no effect",
            fields=("$NCCL_NVLS_ENABLE",),
            edits=(unset("$NCCL_NVLS_ENABLE"),),
        )


RULE = Rule(
    code="COM006",
    slug="nvls-without-switch",
    title="NVLS on links without a switch",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/entrypoints/engine.py:1907 (no hardware check)",
        "NVIDIA NCCL documentation, NCCL_NVLS_ENABLE",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --attention-backend "
        "triton --enable-nccl-nvls --max-running-requests 64",
        hw="rtx_pro_6000",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --enable-nccl-nvls "
        "--max-running-requests 64",
        hw="b300",
        gpus=8,
    ),
)
