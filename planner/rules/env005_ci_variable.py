"""A CI variable switches a check off.

What it checks:
    SGLANG_IS_IN_CI set for the server.

Why:
    In CI the engine lets a context length above the model's pass and shortens some checks; a launch that starts
    there may be refused elsewhere.

Fix:
    Take it away outside CI.

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
    for name in ("SGLANG_IS_IN_CI", "SGLANG_IS_IN_CI_AMD"):
        if ctx.env_reaches(name):
            yield Hit(
                f"{name} lets the engine pass launches that it refuses elsewhere",
                fields=(f"${name}",),
                edits=(unset(f"${name}"),),
            )


RULE = Rule(
    code="ENV005",
    slug="ci-variable",
    title="A CI variable switches a check off",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/configs/model_config.py:1291 (is_in_ci)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "SGLANG_IS_IN_CI=true python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B",
    ),
    informs=True,
)
