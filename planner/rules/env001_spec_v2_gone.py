"""SGLANG_ENABLE_SPEC_V2 no longer exists.

What it checks:
    The variable set for the server on 0.5.15 and later.

Why:
    The second version of speculation is the only one there; the engine warns that the variable was removed and
    ignores it.

Fix:
    Take it away. Safe.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.env_reaches("SGLANG_ENABLE_SPEC_V2"):
        yield Hit(
            "SGLANG_ENABLE_SPEC_V2 was removed in 0.5.15 and has no effect",
            fields=("$SGLANG_ENABLE_SPEC_V2",),
            edits=(unset("$SGLANG_ENABLE_SPEC_V2"),),
        )


RULE = Rule(
    code="ENV001",
    slug="spec-v2-gone",
    title="SGLANG_ENABLE_SPEC_V2 no longer exists",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.15.post1 srt/arg_groups/speculative_hook.py:75",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "SGLANG_ENABLE_SPEC_V2=1 python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 "
        "--tp 8 --max-running-requests 64 --speculative-algorithm EAGLE",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--max-running-requests 64 --speculative-algorithm EAGLE",
        version="0.5.16",
    ),
    informs=True,
    versions=">=0.5.15",
)
