"""FP8 cache with latent attention on sm_120.

What it checks:
    An MLA model with an FP8 KV cache and flashinfer attention on RTX PRO 6000 or RTX 5090.

Why:
    The flashinfer path there does not pass the cache's scales; operators of several machines saw garbled text
    or one token and a stop. Models without latent attention run an FP8 cache there.

Fix:
    Write --kv-cache-dtype bf16. It halves the tokens that the cache holds.

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
    dtype = ctx.text("kv_cache_dtype")
    if not ctx.sm120 or not ctx.is_mla or dtype is None or not dtype.startswith("fp8"):
        return
    if "flashinfer" in ctx.asked_attention:
        yield Hit(
            f"{dtype} cache with latent attention and flashinfer on {ctx.where} gives garbled output",
            fields=("kv_cache_dtype",),
            edits=(set_field("kv_cache_dtype", "bf16"),),
        )


RULE = Rule(
    code="ATT010",
    slug="fp8-kv-mla-sm120",
    title="FP8 cache with latent attention on sm_120",
    consequence=Consequence.WRONG_OUTPUT,
    status=Status.ESTABLISHED,
    sources=(
        "rtx6kpro GLM-5 page",
        "SemiAnalysisAI/InferenceX qwen3.5_fp4_rtx6000pro_sglang_mtp.sh (FP8 cache runs with a GDN model)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "SGLANG_ENABLE_SPEC_V2=True python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 "
        "--attention-backend flashinfer --moe-runner-backend cutlass --kv-cache-dtype fp8_e4m3 "
        "--quantization modelopt_fp4",
        hw="rtx_pro_6000",
        gpus=8,
    ),
    good=Example(
        "SGLANG_ENABLE_SPEC_V2=True python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 "
        "--attention-backend flashinfer --moe-runner-backend cutlass --kv-cache-dtype bf16 --quantization"
        " modelopt_fp4",
        hw="rtx_pro_6000",
        gpus=8,
    ),
)
