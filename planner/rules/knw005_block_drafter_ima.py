"""A block drafter with an FP8 cache on Ampere.

What it checks:
    DFLASH on sm_80 and sm_86 GPUs.

Why:
    Sporadic illegal memory accesses in the DFLASH worker on A6000, with one request and with many, not for want
    of memory. The report is open.

Fix:
    Graphs off or no speculation; a person should choose.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm == "DFLASH" and ctx.sm in (80, 86, 87) and ctx.on_cuda:
        yield Hit(
            f"DFLASH on {ctx.where}: sporadic illegal accesses are reported",
            fields=("speculative_algorithm",),
        )


RULE = Rule(
    code="KNW005",
    slug="block-drafter-ima",
    title="A block drafter with an FP8 cache on Ampere",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "z-lab/dflash issue 38",
        "z-lab/dflash issue 61",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-9B --attention-backend flashinfer "
        "--max-running-requests 3 --speculative-algorithm DFLASH --speculative-draft-model-path "
        "z-lab/Qwen3.5-9B-DFlash --speculative-num-draft-tokens 16",
        hw="a100",
        gpus=1,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-9B --attention-backend flashinfer "
        "--max-running-requests 3 --speculative-algorithm DFLASH --speculative-draft-model-path "
        "z-lab/Qwen3.5-9B-DFlash --speculative-num-draft-tokens 16",
        hw="h100",
        gpus=1,
    ),
)
