"""torch.compile without graph padding.

What it checks:
    --enable-torch-compile with --disable-cuda-graph-padding.

Why:
    The engine asserts: compiled graphs exist for padded sizes only.

Fix:
    Take --disable-cuda-graph-padding away.

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
    if ctx.on("enable_torch_compile") and ctx.on("disable_cuda_graph_padding"):
        yield Hit(
            "--enable-torch-compile needs padded graphs",
            fields=("disable_cuda_graph_padding", "enable_torch_compile"),
            edits=(unset("disable_cuda_graph_padding"),),
        )


RULE = Rule(
    code="GRF009",
    slug="compile-without-padding",
    title="torch.compile without graph padding",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/validation_hook.py:180",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-torch-compile "
        "--disable-cuda-graph-padding",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-torch-compile",
    ),
)
