"""EAGLE on a target with sliding-window layers.

What it checks:
    The EAGLE family on Gemma 2 and 3, EXAONE 4 and similar targets with flashinfer or triton attention.

Why:
    The window metadata is not set in the verify and draft-extend passes; the first of them fails with a
    TypeError on None. gpt-oss was handled separately.

Fix:
    A backend other than these two, or no speculation; a person should choose.

Known problems:
    The fix was open in autumn 2026, so later engines may be free of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.eagle_family or ctx.facts is None or ctx.facts.hybrid != "swa":
        return
    if ctx.architecture in ("GptOssForCausalLM", "MiMoV2FlashForCausalLM") or not ctx.on_cuda:
        return
    backends = ctx.asked_attention & {"flashinfer", "triton"}
    if backends or not ctx.given("attention_backend"):
        named = ", ".join(sorted(backends)) or "the default backend"
        yield Hit(
            f"{ctx.algorithm} on {ctx.model_name}, a sliding-window model, with {named}: known to fail at the "
            "first verify",
            fields=("speculative_algorithm", ctx.attention_field),
        )


RULE = Rule(
    code="ATT009",
    slug="eagle-sliding-window",
    title="EAGLE on a target with sliding-window layers",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 22679, PR 22892 (closed), PR 39287 (open)",
        "sgl-project/sglang PR 9279 (gpt-oss)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path google/gemma-3-27b-it --attention-backend "
        "flashinfer --speculative-algorithm EAGLE3 --speculative-draft-model-path drafts/gemma-3-eagle3 "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --attention-backend flashinfer "
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path drafts/Qwen3-32B-eagle3 "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
)
