"""The host-cache layout that is asked for is not the one that runs.

What it checks:
    --hicache-mem-layout page_first_direct with the kernel transfer backend, or page_first with the direct one.

Why:
    The two go together in fixed pairs; the engine changes one of them with a line in the log.

Fix:
    Write the pair that runs: direct with page_first_direct, kernel with page_first.

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
    if not ctx.on("enable_hierarchical_cache"):
        return
    backend, layout = ctx.text("hicache_io_backend"), ctx.text("hicache_mem_layout")
    if backend == "kernel" and layout == "page_first_direct":
        yield Hit(
            "layout page_first_direct runs with the direct backend, not with kernel",
            fields=("hicache_io_backend",),
            edits=(set_field("hicache_io_backend", "direct"),),
        )
    elif backend == "direct" and layout == "page_first":
        yield Hit(
            "the direct backend runs layout page_first_direct, not page_first",
            fields=("hicache_mem_layout",),
            edits=(set_field("hicache_mem_layout", "page_first_direct"),),
        )


RULE = Rule(
    code="SCH011",
    slug="hicache-layout-changed",
    title="The host-cache layout that is asked for is not the one that runs",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/hicache_hook.py:182,192",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --enable-hierarchical-cache "
        "--hicache-io-backend kernel --hicache-mem-layout page_first_direct",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --enable-hierarchical-cache "
        "--hicache-io-backend direct --hicache-mem-layout page_first_direct",
    ),
)
