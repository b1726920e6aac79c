"""A variable with the old prefix.

What it checks:
    Variables that begin with SGL_ and have a form with SGLANG_.

Why:
    The prefix was changed in 2025; newer engines rewrite the old form with a warning, and may stop doing so.

Fix:
    Write SGLANG_.

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
    for name, variable in ctx.env.items():
        if name.startswith("SGL_") and variable.exported:
            yield Hit(
                f"{name} has the old prefix; the variable is SGLANG_{name.removeprefix('SGL_')}",
                fields=(f"${name}",),
                place=variable.place,
            )


RULE = Rule(
    code="ENV002",
    slug="old-env-prefix",
    title="A variable with the old prefix",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/environ.py:2298",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "SGL_ENABLE_JIT_DEEPGEMM=1 python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8",
    ),
    good=Example(
        "SGLANG_ENABLE_JIT_DEEPGEMM=1 python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8",
    ),
    informs=True,
)
