"""EAGLE verification on consumer and entry Ampere.

What it checks:
    The EAGLE family with hybrid Qwen3.5-type models on sm_86 and sm_89 class GPUs.

Why:
    Both ranks spin in the tree sampling kernel at full utilisation and low power until the watchdog ends the
    server after 300 s; /health answers 200 meanwhile. The report is open.

Fix:
    No speculation on these GPUs until it is settled.

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
    if not ctx.eagle_family or ctx.sm not in (86, 87, 89) or ctx.facts is None or ctx.facts.hybrid != "gdn":
        return
    yield Hit(
        f"EAGLE verification of a hybrid model on {ctx.where}: an open report of a hang",
        fields=("speculative_algorithm",),
    )


RULE = Rule(
    code="KNW001",
    slug="ampere-verify-hang",
    title="EAGLE verification on consumer and entry Ampere",
    consequence=Consequence.HANG,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 35822",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path models/Qwen3.8-27B-AWQ --tp 2 --attention-backend "
        "triton --max-running-requests 2 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="l40s",
        gpus=2,
        version="0.5.17",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path models/Qwen3.8-27B-AWQ --tp 2 --attention-backend "
        "triton --max-running-requests 2 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="h100",
        gpus=2,
        version="0.5.17",
    ),
    versions=">=0.5.16",
)
