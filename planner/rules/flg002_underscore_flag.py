"""A flag is spelled with underscores.

What it checks:
    An unknown flag that becomes a known one when its underscores are written as hyphens.

Why:
    argparse treats --reasoning_parser and --reasoning-parser as different options; the first is an unrecognized
    argument and the server exits with code 2.

Fix:
    Write hyphens. Safe: the meaning is the same.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import FaultKind, RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for fault in ctx.faults:
        if fault.kind is not FaultKind.UNKNOWN or "_" not in fault.flag or ctx.launcher == "dynamo":
            continue
        right = fault.flag.replace("_", "-")
        if ctx.knows_flag(right):
            yield Hit(
                f"unknown flag {fault.flag}: flags are written with hyphens, {right}",
                fields=(fault.flag,),
                place=fault.place,
                edits=(set_field(fault.flag, right),),
            )


RULE = Rule(
    code="FLG002",
    slug="underscore-flag",
    title="A flag is spelled with underscores",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 12818",
        "sgl-project/sglang issue 5032",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable_metrics",
        version="0.5.11",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-metrics",
        version="0.5.11",
    ),
)
