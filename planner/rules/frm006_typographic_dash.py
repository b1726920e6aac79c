"""A flag begins with a typographic dash.

What it checks:
    A word that begins with an en dash, an em dash or a minus sign, or a flag with a single hyphen whose long
    form is known.

Why:
    Text processors turn two hyphens into one dash. argparse takes such a word for a stray value and exits with
    code 2.

Fix:
    Write two hyphens. Safe.

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
        if fault.kind not in (FaultKind.POSITIONAL, FaultKind.UNKNOWN):
            continue
        bare = fault.flag.lstrip("-\u2013\u2014\u2212")
        right = f"--{bare}"
        if not fault.flag.startswith("--") and fault.flag != bare and ctx.knows_flag(right.split("=", 1)[0]):
            yield Hit(
                f"{fault.flag} does not begin with two hyphens; the flag is {right}",
                fields=(fault.flag,),
                place=fault.place,
                edits=(set_field(fault.flag, right),),
            )


RULE = Rule(
    code="FRM006",
    slug="typographic-dash",
    title="A flag begins with a typographic dash",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "Python documentation, argparse, prefix_chars",
        "sgl-project/sglang issue 34226 (unrecognized arguments end the start)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B –tp-size 2",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size 2",
        version="0.5.16",
    ),
)
