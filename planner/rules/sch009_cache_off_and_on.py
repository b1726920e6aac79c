"""Hierarchical cache without a prefix cache.

What it checks:
    --enable-hierarchical-cache beside --disable-radix-cache.

Why:
    The hierarchical cache keeps pages of the radix tree; without the tree the engine refuses or leaves it
    without use.

Fix:
    One of the two; a person should choose.

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
    if ctx.on("enable_hierarchical_cache") and ctx.on("disable_radix_cache"):
        yield Hit(
            "the hierarchical cache keeps pages of the radix cache, which is disabled",
            fields=("enable_hierarchical_cache", "disable_radix_cache"),
            edits=(unset("enable_hierarchical_cache"),),
            safe=False,
        )


RULE = Rule(
    code="SCH009",
    slug="cache-off-and-on",
    title="Hierarchical cache without a prefix cache",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/hicache_hook.py",
        "sglang 0.5.12.post1 srt/server_args.py (hierarchical cache and radix cache are mutually exclusive)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --enable-hierarchical-cache "
        "--disable-radix-cache",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --enable-hierarchical-cache",
    ),
)
