"""A latent-attention backend on a model without latent attention.

What it checks:
    trtllm_mla, cutlass_mla, flashmla, cutedsl_mla or tokenspeed_mla named for a model that is known to use
    grouped-query attention.

Why:
    The engine raises "... backend can only be used with MLA models".

Fix:
    trtllm_mha on sm_100 and sm_103, fa3 on Hopper, triton elsewhere.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_MLA_ONLY = frozenset({"trtllm_mla", "cutlass_mla", "flashmla", "cutedsl_mla", "tokenspeed_mla"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.facts is None or ctx.facts.attention != "gqa":
        return
    good = "trtllm_mha" if ctx.sm100 else "fa3" if ctx.sm == 90 else "triton"
    for name in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
        backend = ctx.text(name)
        if backend in _MLA_ONLY:
            yield Hit(
                f"{backend} is for latent attention; {ctx.model_name} has none",
                fields=(name,),
                edits=(set_field(name, good),),
            )


RULE = Rule(
    code="ATT011",
    slug="mla-backend-without-mla",
    title="A latent-attention backend on a model without latent attention",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.11 srt/layers/attention/attention_registry.py:57",
        "sglang 0.5.23 srt/layers/attention/attention_registry.py:95",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 4 --attention-backend trtllm_mla",
        hw="b200",
        gpus=4,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 4 --attention-backend trtllm_mha",
        hw="b200",
        gpus=4,
    ),
)
