"""A context longer than the model has.

What it checks:
    --context-length above the length that the model's config gives.

Why:
    The engine raises unless SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN is set; with it the positions beyond are
    untrained. Inside a CI environment the check is skipped, so a test may pass where production fails.

Fix:
    The model's length.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    asked = ctx.number("context_length")
    longest = ctx.facts.context if ctx.facts is not None else None
    if asked is None or longest is None or asked <= longest:
        return
    if ctx.env_reaches("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN") or ctx.given("json_model_override_args"):
        return
    yield Hit(
        f"context length {asked}, but {ctx.model_name} has {longest}",
        fields=("context_length",),
        edits=(set_field("context_length", longest),),
    )


RULE = Rule(
    code="SCH008",
    slug="context-beyond-model",
    title="A context longer than the model has",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/configs/model_config.py:1291",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --context-length 1000000",
        hw="b200",
        gpus=8,
        model="kimi-k2.6",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --context-length 131072",
        hw="b200",
        gpus=8,
        model="kimi-k2.6",
    ),
)
