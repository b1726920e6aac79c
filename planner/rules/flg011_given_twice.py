"""One argument is given twice with different values.

What it checks:
    The same argument set more than once, under one name or under an alias, with values that differ.

Why:
    argparse keeps the last value without a word. A reader of the file cannot tell which was meant; with aliases
    (--cuda-graph-max-bs and --cuda-graph-max-bs-decode) the conflict is easy to miss.

Fix:
    Keep the last one, which is what the engine does. Safe: nothing changes in effect.

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
    last: dict[str, list[int]] = {}
    for index, given in enumerate(ctx.flags):
        if given.field is not None:
            last.setdefault(given.field, []).append(index)
    for name, places in last.items():
        values = [ctx.flags[index].value for index in places]
        if len(places) < 2 or (len(set(values)) == 1 and None not in values):
            continue
        first, final = ctx.flags[places[0]], ctx.flags[places[-1]]
        yield Hit(
            f"{first.flag} {first.value or '(unknown)'} is overridden by {final.flag} {final.value or '(unknown)'}: "
            "the last one counts",
            fields=(name,),
            place=first.place,
            informs=None in values,
        )


RULE = Rule(
    code="FLG011",
    slug="given-twice",
    title="One argument is given twice with different values",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 13392 (--port twice)",
        "sgl-project/sglang PR 29274 (--cuda-graph-max-bs 16 beside --cuda-graph-max-bs-decode 8)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --port 30000 --tp-size 2 --port 8888",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size 2 --port 8888",
    ),
)
