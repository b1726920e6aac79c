"""A flag is abbreviated.

What it checks:
    A flag that is not a name of the option but a unique beginning of one (the common --tp, --dp, --pp and --ep
    are let pass).

Why:
    SGLang leaves argparse's abbreviations on. A later version that adds a longer option with the same beginning
    turns the short form into an error, as happened to --cuda-graph-max-bs.

Fix:
    Write the whole name. Safe.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import FaultKind, RuleContext

__all__ = ["RULE"]

_COMMON = frozenset({"--tp", "--dp", "--pp", "--ep", "--model"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for fault in ctx.faults:
        if fault.kind is FaultKind.ABBREVIATED and fault.flag not in _COMMON:
            whole = fault.options[0]
            yield Hit(
                f"{fault.flag} is short for {whole}",
                fields=(fault.flag,),
                place=fault.place,
                edits=(set_field(fault.flag, whole),),
            )


RULE = Rule(
    code="FLG009",
    slug="abbreviated-flag",
    title="A flag is abbreviated",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 run: --cuda-graph-max-bs became ambiguous",
        "Python documentation, argparse, allow_abbrev",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-algo EAGLE3 "
        "--speculative-draft-model-path some/eagle3-draft",
        version="0.5.11",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path some/eagle3-draft",
        version="0.5.11",
    ),
    informs=True,
)
