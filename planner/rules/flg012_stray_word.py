"""A word that belongs to no flag.

What it checks:
    A word on the command line that is neither a flag nor the value of one.

Why:
    The engine takes no positional arguments; argparse exits with code 2 ("unrecognized arguments"). Switches
    take no value: --enable-metrics true is the usual form of this fault.

Fix:
    Take the word away. Needs a person where it may be a lost flag.

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
    if ctx.writing_faults("unquoted-json") or ctx.diffusion or ctx.launcher == "dynamo":
        return
    if any(fault.flag.startswith(_DASHES) for fault in ctx.faults):
        return
    for fault in ctx.faults:
        if fault.kind is FaultKind.POSITIONAL:
            yield Hit(f"stray word {fault.flag!r}: no flag takes it", place=fault.place, informs=not fault.certain)


_DASHES = ("\u2013", "\u2014", "\u2212")


RULE = Rule(
    code="FLG012",
    slug="stray-word",
    title="A word that belongs to no flag",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/arg_utils.py",
        "Python documentation, argparse",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-metrics true",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-metrics",
    ),
)
