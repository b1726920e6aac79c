"""Two-batch overlap without an all-to-all backend.

What it checks:
    --enable-two-batch-overlap without --moe-a2a-backend.

Why:
    The overlap hides the all-to-all of one half batch behind the other half; without one the engine asserts
    ("moe_a2a_backend cannot be 'none'").

Fix:
    Take the flag away, or name the backend; a person should choose.

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
    if ctx.on("enable_two_batch_overlap") and not ctx.given("moe_a2a_backend"):
        yield Hit(
            "--enable-two-batch-overlap needs an all-to-all backend",
            fields=("enable_two_batch_overlap",),
            edits=(unset("enable_two_batch_overlap"),),
            safe=False,
            informs=not ctx.version.stated,
        )


RULE = Rule(
    code="SCH012",
    slug="two-batch-overlap-alone",
    title="Two-batch overlap without an all-to-all backend",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.11 srt/server_args.py:6939",
        "sglang 0.5.12.post1 srt/server_args.py:7378",
        "sglang 0.5.16 srt/server_args.py:7569 (relaxed)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --enable-two-batch-overlap",
        version="0.5.12.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--enable-two-batch-overlap --moe-a2a-backend deepep",
        version="0.5.12.post1",
    ),
    versions="<0.5.15",
)
