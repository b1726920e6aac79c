"""JSON stands unquoted on a shell command line.

What it checks:
    A JSON value with blanks or double quotes that is not inside single quotes.

Why:
    The shell splits it at blanks and removes its double quotes; the parser then gets broken JSON and stray
    words and exits with code 2.

Fix:
    Put single quotes around it. Safe.

Known problems:
    Text copied from a process listing has lost its quotes but was started with them; hence only suspected.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for fault in ctx.writing_faults("unquoted-json"):
        yield Hit(fault.message, place=fault.place, fix_note="put single quotes around the JSON")


RULE = Rule(
    code="FRM003",
    slug="unquoted-json",
    title="JSON stands unquoted on a shell command line",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 34260",
        "POSIX.1-2017 Shell Command Language 2.2",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --model-loader-extra-config "
        '{"enable_multithread_load": true,"num_threads": 4}',
        form="bash",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --model-loader-extra-config "
        '\'{"enable_multithread_load": true, "num_threads": 4}\'',
        form="bash",
    ),
)
