"""A value of the wrong type.

What it checks:
    Text where the option reads a number, or a fraction where it reads an integer.

Why:
    argparse converts the value and exits with code 2 when that fails.

Fix:
    A person has to say what was meant.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import FaultKind, RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for fault in ctx.faults:
        if fault.kind is FaultKind.BAD_TYPE:
            yield Hit(
                fault.message,
                fields=(fault.flag,),
                place=fault.place,
                edits=(unset(fault.flag),),
                safe=False,
                informs=not fault.certain,
            )


RULE = Rule(
    code="FLG007",
    slug="bad-type",
    title="A value of the wrong type",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/arg_utils.py",
        "Python documentation, argparse, type",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --max-running-requests 64.0",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --max-running-requests 64",
        version="0.5.16",
    ),
)
