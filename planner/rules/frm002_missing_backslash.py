"""A line of flags is cut off from its command.

What it checks:
    Lines of flags that the shell does not attach to the launch because the line before does not end in a
    backslash.

Why:
    The server starts without them; the rest is run as a command and fails with "command not found", after the
    server has ended.

Fix:
    End the line before with a backslash. The server then gets flags that it ran without.

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
    for fault in ctx.writing_faults("missing-backslash", "no-backslash"):
        yield Hit(fault.message, place=fault.place, informs=fault.kind == "no-backslash")


RULE = Rule(
    code="FRM002",
    slug="missing-backslash",
    title="A line of flags is cut off from its command",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "POSIX.1-2017 Shell Command Language 2.2.1",
        "sgl-project/SpecForge issue 310 (a command whose backslashes are lost)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B\n  --max-running-requests 8\n",
        form="bash",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\\n  --max-running-requests 8\n",
        form="bash",
    ),
)
