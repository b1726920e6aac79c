"""FP4 experts on sm_120 without a known good run.

What it checks:
    A mixture-of-experts model in NVFP4 on RTX PRO 6000 or RTX 5090 that is not of a family with published
    correct runs there (Qwen3.5, GLM-5, MiniMax-M2, Kimi).

Why:
    One model answered every prompt with the same character over every expert backend while another FP4 model
    was coherent on the same machines; checkpoint or kernel, it was never settled. The server reports healthy.

Fix:
    Check the output before traffic is sent (a readiness probe does not).

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]

_RAN_WELL = frozenset(
    {
        "Qwen3_5MoeForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "MiniMaxM2ForCausalLM",
        "KimiK25ForConditionalGeneration",
    }
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.sm120 or ctx.form_of_weights is not WeightForm.NVFP4 or ctx.architecture in _RAN_WELL:
        return
    if not (ctx.is_moe or ctx.given("moe_runner_backend")):
        return
    yield Hit(
        f"FP4 experts of {ctx.model_name} on {ctx.where}: no correct run is on record; test the output first",
        fields=("quantization", "moe_runner_backend", "model_path"),
        informs=ctx.facts is None,
    )


RULE = Rule(
    code="MOE005",
    slug="nvfp4-moe-sm120",
    title="FP4 experts on sm_120 without a known good run",
    consequence=Consequence.WRONG_OUTPUT,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 24321",
        "SemiAnalysisAI/InferenceX qwen3.5_fp4_rtx6000pro_sglang_mtp.sh",
        "rtx6kpro GLM-5 page and PR 10",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path shadowlilac/MiMo-V2.5-NVFP4 --tp 4 "
        "--moe-runner-backend flashinfer_cutlass --quantization modelopt_fp4",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 4 "
        "--moe-runner-backend flashinfer_cutlass --attention-backend flashinfer --quantization "
        "modelopt_fp4",
        hw="rtx_pro_6000",
        gpus=4,
    ),
)
