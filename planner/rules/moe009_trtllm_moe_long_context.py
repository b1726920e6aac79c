"""Long turns crash the trtllm expert kernel.

What it checks:
    GLM-5 in FP4 on sm_100 or sm_103 with flashinfer_trtllm experts (asked for or by default) and a context that
    allows more than 100K tokens.

Why:
    Turns with more than 16K new tokens on more than 100K cached ones fault in the expert operator, at one
    running request, several times a day. --disable-shared-experts-fusion does not help.

Fix:
    A smaller --context-length, a prefill chunk of 8192, or another expert backend; a person should choose.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.sm100 or ctx.architecture != "GlmMoeDsaForCausalLM" or ctx.form_of_weights is not WeightForm.NVFP4:
        return
    if ctx.text("moe_runner_backend") not in (None, "auto", "flashinfer_trtllm"):
        return
    context, chunk = ctx.number("context_length"), ctx.number("chunked_prefill_size")
    if (context is not None and context <= 100_000) or (chunk is not None and 0 < chunk <= 8192):
        return
    yield Hit(
        "long turns (16K new tokens on 100K cached) crash the trtllm FP4 expert kernel of this version",
        fields=("moe_runner_backend", "context_length", "model_path"),
        edits=(set_field("chunked_prefill_size", 8192),),
        safe=False,
    )


RULE = Rule(
    code="MOE009",
    slug="trtllm-moe-long-context",
    title="Long turns crash the trtllm expert kernel",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "flashinfer-ai/flashinfer issue 3722",
        "sgl-project/sglang issue 29160",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5.2-NVFP4 --tp 8 --quantization "
        "modelopt_fp4 --trust-remote-code",
        hw="b200",
        gpus=8,
        version="0.5.15.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5.2-NVFP4 --tp 8 --quantization "
        "modelopt_fp4 --trust-remote-code --context-length 65536",
        hw="b200",
        gpus=8,
        version="0.5.15.post1",
    ),
    versions=">=0.5.14,<0.5.16",
)
