"""No model is named.

What it checks:
    A launch without --model-path (or --model) in which every word could be read.

Why:
    --model-path is the one required argument of the engine; argparse exits with code 2 without it.

Fix:
    A person has to name the model.

Known problems:
    A launch that gets further arguments from outside ("$@", $EXTRA_ARGS) is let pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import FaultKind, RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.open_ended or ctx.server_reported or ctx.form == "python" or ctx.given("model_path") or ctx.given("config"):
        return
    if any(fault.kind is FaultKind.POSITIONAL for fault in ctx.faults):
        return
    yield Hit("no --model-path is given", informs=ctx.launcher in ("serve", "dynamo"))


RULE = Rule(
    code="FLG014",
    slug="no-model",
    title="No model is named",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/fields/model.py (required)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --tp-size 8 --port 30000",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --port 30000",
    ),
)
