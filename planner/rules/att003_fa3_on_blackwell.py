"""FlashAttention 3 on a GPU newer than Hopper.

What it checks:
    fa3 named as an attention backend of target, draft or multimodal part on sm_100, sm_103 or sm_120.

Why:
    The fa3 kernels exist for sm_80 to sm_90; the engine asserts on that.

Fix:
    trtllm_mla for MLA models and trtllm_mha for others on sm_100 and sm_103; triton on sm_120.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_FIELDS = (
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "speculative_draft_attention_backend",
    "mm_attention_backend",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not (ctx.sm100 or ctx.sm120):
        return
    for name in _FIELDS:
        if ctx.text(name) != "fa3":
            continue
        good = "triton" if ctx.sm120 or not ctx.facts else ("trtllm_mla" if ctx.is_mla else "trtllm_mha")
        good = "triton_attn" if name == "mm_attention_backend" else good
        yield Hit(
            f"{ctx.flag_text(name)} fa3 does not run on {ctx.where}",
            fields=(name,),
            edits=(set_field(name, good),),
        )


RULE = Rule(
    code="ATT003",
    slug="fa3-on-blackwell",
    title="FlashAttention 3 on a GPU newer than Hopper",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/layers/attention/attention_registry.py:244",
        "sgl-project/sglang issue 12360",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --attention-backend fa3",
        hw="b200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --attention-backend fa3",
        hw="h200",
        gpus=8,
    ),
)
