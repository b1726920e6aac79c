"""The engine's parser does not know this flag.

What it checks:
    A flag that is in no flag table of the engine versions that the launch may run on, and that the rules for
    underscores, vLLM flags and removed flags do not explain better.

Why:
    SGLang parses its command line with argparse; an unknown flag ends the process with exit code 2 before
    anything is loaded.

Fix:
    The nearest known flag is named, and written where only a slip of spelling can be meant; any other flag is taken
    away. Both only by a person, because the purpose is not known.

Known problems:
    A build with extra flags (a fork, a plugin launcher) is not known here; state its dialect or suppress the
    finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field, unset
from planner.rules.context import FaultKind, RuleContext
from planner.rules.flag_history import explained

__all__ = ["RULE"]


_TYPO = 0.85
"""Likeness (difflib ratio) from which an unknown flag is taken for a slip of a known one."""


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.diffusion:
        return
    for fault in ctx.faults:
        if fault.kind is not FaultKind.UNKNOWN or explained(fault.flag, ctx):
            continue
        typo = bool(fault.options) and SequenceMatcher(None, fault.flag, fault.options[0]).ratio() > _TYPO
        near = f"; did you mean {' or '.join(fault.options)}?" if fault.options else ""
        yield Hit(
            f"{fault.message}{near}",
            fields=(fault.flag,),
            place=fault.place,
            edits=(set_field(fault.flag, fault.options[0]) if typo else unset(fault.flag),),
            safe=False,
            informs=not fault.certain or ctx.launcher == "dynamo" or (ctx.may_be_a_fork and not typo),
            suspected=len(ctx.version.releases) > 1 and not typo,
        )


RULE = Rule(
    code="FLG001",
    slug="unknown-flag",
    title="The engine's parser does not know this flag",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/arg_utils.py (argparse)",
        "sgl-project/sglang issue 4116 (unrecognized arguments: --enable-reasoning)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-reasoning",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --reasoning-parser qwen3",
        version="0.5.16",
    ),
)
