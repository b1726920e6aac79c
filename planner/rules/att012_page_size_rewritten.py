"""The page size that is asked for is not the one that runs.

What it checks:
    --page-size with a backend that only takes other sizes: trtllm_mla and cutedsl_mla (32, 64), flashmla (64),
    cutlass_mla (128), trtllm_mha (16, 32, 64, 128).

Why:
    The engine sets a size that the kernels have, with a line in the log. Prefix-cache hits then come in larger
    steps than the file says.

Fix:
    Write the size that runs. Safe.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_SIZES = {
    "trtllm_mla": ((32, 64), 64),
    "cutedsl_mla": ((32, 64), 64),
    "flashmla": ((64,), 64),
    "cutlass_mla": ((128,), 128),
    "trtllm_mha": ((16, 32, 64, 128), 64),
}


def _check(ctx: RuleContext) -> Iterator[Hit]:
    page = ctx.number("page_size")
    if page is None:
        return
    for backend in sorted(ctx.asked_attention):
        sizes, chosen = _SIZES.get(backend, ((page,), page))
        if page not in sizes:
            yield Hit(
                f"{backend} has pages of {' or '.join(map(str, sizes))} tokens: the engine runs {chosen}, not {page}",
                fields=("page_size",),
                edits=(set_field("page_size", chosen),),
            )


RULE = Rule(
    code="ATT012",
    slug="page-size-rewritten",
    title="The page size that is asked for is not the one that runs",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/overrides.py:1161,1294",
        "sgl-project/sglang PR 5390 (cutlass_mla: 128)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend "
        "trtllm_mla --page-size 1",
        hw="b200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend "
        "trtllm_mla --page-size 64",
        hw="b200",
        gpus=8,
    ),
)
