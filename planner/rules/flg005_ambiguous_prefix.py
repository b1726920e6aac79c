"""An abbreviated flag fits more than one option.

What it checks:
    A shortened flag that is the beginning of two or more options of the engine version.

Why:
    argparse completes a prefix only when it is unique; otherwise it exits with code 2 and "ambiguous option".

Fix:
    Write the whole name of the option that is meant; a person has to choose.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import FaultKind, RuleContext
from planner.rules.flag_history import removed_flag

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for fault in ctx.faults:
        if fault.kind is FaultKind.AMBIGUOUS and removed_flag(fault.flag, ctx.tables) is None:
            yield Hit(
                f"{fault.flag} is an ambiguous abbreviation: {', '.join(fault.options) or fault.message}",
                fields=(fault.flag,),
                place=fault.place,
                informs=not fault.certain,
            )


RULE = Rule(
    code="FLG005",
    slug="ambiguous-prefix",
    title="An abbreviated flag fits more than one option",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 run: ambiguous option: --cuda-graph-max-bs could match "
        "--cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill",
        "Python documentation, argparse, allow_abbrev",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-draft some/draft",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-draft-model-path "
        "some/draft --speculative-algorithm EAGLE3",
        version="0.5.16",
    ),
)
