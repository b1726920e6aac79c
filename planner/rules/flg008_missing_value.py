"""An option without its value.

What it checks:
    An option that needs a value and is followed by another option or by the end of the command.

Why:
    argparse exits with code 2 ("expected one argument"). The usual cause is a variable that is empty or a line
    that was cut.

Fix:
    A person has to give the value.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import FaultKind, RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.writing_faults("unquoted-json"):
        return
    for fault in ctx.faults:
        if fault.kind is FaultKind.MISSING_VALUE:
            yield Hit(fault.message, fields=(fault.flag,), place=fault.place, informs=not fault.certain)


RULE = Rule(
    code="FLG008",
    slug="missing-value",
    title="An option without its value",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/arg_utils.py",
        "Python documentation, argparse, nargs",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size --port 8000",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size $TP --port 8000",
    ),
)
