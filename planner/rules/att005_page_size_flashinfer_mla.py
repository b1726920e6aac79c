"""A page size above 1 with flashinfer's latent attention.

What it checks:
    An MLA model on sm_100 with --page-size above 1 where flashinfer is asked for or was the default of the
    version.

Why:
    The flashinfer MLA path of that time took pages of one token only; FP8 DeepSeek with page size 64 failed
    while the model worker started.

Fix:
    Name trtllm_mla, whose pages are 32 or 64 tokens; or drop the page size.

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
    page = ctx.number("page_size")
    if page is None or page <= 1 or not ctx.is_mla or not (ctx.sm100 or ctx.hardware is None):
        return
    if ctx.given("attention_backend") and ctx.asked_attention != {"flashinfer"}:
        return
    yield Hit(
        f"page size {page} needs trtllm_mla here; flashinfer's latent attention takes pages of 1",
        fields=("page_size",),
        edits=(set_field("attention_backend", "trtllm_mla"),),
        suspected=ctx.hardware is None,
    )


RULE = Rule(
    code="ATT005",
    slug="page-size-flashinfer-mla",
    title="A page size above 1 with flashinfer's latent attention",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 9572 (filed by a maintainer)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model deepseek-ai/DeepSeek-V3.1 --tp 8 --speculative-algorithm"
        " EAGLE --page-size 64",
        hw="b200",
        gpus=8,
        version="2025-08",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model deepseek-ai/DeepSeek-V3.1 --tp 8 --attention-backend "
        "trtllm_mla --page-size 64",
        hw="b200",
        gpus=8,
        version="2025-08",
    ),
    versions="<0.5.4",
)
