"""Attention backend without sinks for gpt-oss.

What it checks:
    gpt-oss with an attention backend other than triton, trtllm_mha, fa3, fa4, ascend and intel_xpu.

Why:
    The model's attention sinks are not in the other backends; the engine asserts on its list.

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

_WITH_SINKS = frozenset({"triton", "trtllm_mha", "fa3", "fa4", "ascend", "intel_xpu", "intel_amx", "aiter", "wave"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.architecture != "GptOssForCausalLM":
        return
    wrong = ctx.asked_attention - _WITH_SINKS
    if wrong:
        good = "trtllm_mha" if ctx.sm100 else "fa3" if ctx.sm == 90 else "triton"
        yield Hit(
            f"gpt-oss needs attention sinks, which {', '.join(sorted(wrong))} lacks",
            fields=(ctx.attention_field,),
            edits=(set_field(ctx.attention_field, good),),
        )


RULE = Rule(
    code="ATT013",
    slug="gpt-oss-backend",
    title="Attention backend without sinks for gpt-oss",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.5 srt/server_args.py:955",
        "sgl-project/sglang issue 9140",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-20b --attention-backend flashinfer",
        hw="h100",
        gpus=1,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-20b --attention-backend fa3",
        hw="h100",
        gpus=1,
    ),
)
