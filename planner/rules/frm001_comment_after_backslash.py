"""A comment or blank follows the backslash of a continued line.

What it checks:
    A shell line that ends in a backslash followed by blanks or a comment, so that the command ends there.

Why:
    Only a backslash directly before the newline continues a line. The flags below are run as a command of their
    own and never reach the server, which starts without them.

Fix:
    Take the comment away. Safe in itself, but the server then gets flags that it ran without.

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
    for fault in ctx.writing_faults("comment-after-backslash", "space-after-backslash", "comment-in-continuation"):
        if not fault.lost:
            continue
        yield Hit(f"{fault.message}; lost: {' '.join(fault.lost[:6])}", place=fault.place)


RULE = Rule(
    code="FRM001",
    slug="comment-after-backslash",
    title="A comment or blank follows the backslash of a continued line",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "POSIX.1-2017 Shell Command Language 2.2.1",
        "tutu329/server-install ds-v3-671b-8.sh (commented continuation lines)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\ # the model\n  --max-running-requests 8\n",
        form="bash",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\\n  --max-running-requests 8\n",
        form="bash",
    ),
)
