"""The sparse index has no kernel on sm_120.

What it checks:
    A DSA model (GLM-5, DeepSeek-V3.2) on RTX PRO 6000 or RTX 5090 with the dsa or nsa attention backend, asked
    for or by default.

Why:
    The index is built by DeepGEMM, which aborts with "Unsupported architecture" on sm_120 during warm-up.
    flashinfer and triton run dense latent attention instead.

Fix:
    Write --attention-backend triton (dense attention: correct, without the sparse speed).

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
    if not ctx.sm120 or ctx.facts is None or ctx.facts.attention != "dsa" or ctx.unread("attention_backend"):
        return
    asked = ctx.asked_attention
    if asked & {"dsa", "nsa"} or not asked:
        yield Hit(
            f"the dsa backend {'is the default and ' if not asked else ''}needs DeepGEMM, which aborts on {ctx.where}",
            fields=(ctx.attention_field, "model_path"),
            edits=(set_field("attention_backend", "triton"),),
        )


RULE = Rule(
    code="ATT017",
    slug="dsa-on-sm120",
    title="The sparse index has no kernel on sm_120",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("SemiAnalysisAI/InferenceX PR 2335 (header of glm5.2_fp4_rtx6000pro_sglang.sh)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5.2-NVFP4 --tp 8 --quantization "
        "modelopt_fp4 --attention-backend dsa",
        hw="rtx_pro_6000",
        gpus=8,
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5.2-NVFP4 --tp 8 --quantization "
        "modelopt_fp4 --attention-backend triton",
        hw="rtx_pro_6000",
        gpus=8,
        version="0.5.16",
    ),
)
