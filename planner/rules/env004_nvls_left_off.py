"""NVLS is left off where the machine has it.

What it checks:
    TP of 4 or more on a machine with an NVLink switch without --enable-nccl-nvls and without --enable-symm-mem,
    in a speculative launch.

Why:
    The engine sets NCCL_NVLS_ENABLE to 0 unless one of the flags is given. In-switch reduction was worth 5 to 6
    % of throughput on B300.

Fix:
    --enable-nccl-nvls.

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
    if ctx.hardware is None or not ctx.hardware.nvls or (ctx.tp or 0) < 4 or ctx.sm != 103 or not ctx.speculates:
        return
    if ctx.on("enable_nccl_nvls") or ctx.on("enable_symm_mem") or ctx.env_reaches("NCCL_NVLS_ENABLE"):
        return
    yield Hit(
        "the engine switches NVLS off without --enable-nccl-nvls; it was worth 5 to 6 % on B300",
        fields=("tp_size",),
        edits=(set_field("enable_nccl_nvls", True),),
    )


RULE = Rule(
    code="ENV004",
    slug="nvls-left-off",
    title="NVLS is left off where the machine has it",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=(
        "field note FN-13",
        "sglang 0.5.23 srt/entrypoints/engine.py:1907",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --max-running-requests "
        "64 --speculative-algorithm DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --enable-nccl-nvls "
        "--max-running-requests 64 --speculative-algorithm DFLASH --speculative-draft-model-path "
        "drafts/Kimi-K2.6-DFlash",
        hw="b300",
        gpus=8,
    ),
    informs=True,
)
