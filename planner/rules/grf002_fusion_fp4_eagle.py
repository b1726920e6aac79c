"""Fused all-reduce in front of an FP4 draft.

What it checks:
    The EAGLE family with FP4 weights on sm_100 or sm_103 and flashinfer all-reduce fusion asked for, on engines
    of summer 2026.

Why:
    The fused all-reduce, residual and norm does not complete its dependent-launch chain inside a captured
    graph; capture crashes. On single-node sm_103 the automatic backend was at fault too.

Fix:
    --enforce-disable-flashinfer-allreduce-fusion. It costs some latency.

Known problems:
    Reported for GLM-5; for other models, whose published launches run with fusion, this is a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field, unset
from planner.rules.context import RuleContext
from planner.rules.models import WeightForm

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.eagle_family or not ctx.sm100 or ctx.form_of_weights is not WeightForm.NVFP4:
        return
    if ctx.on("enforce_disable_flashinfer_allreduce_fusion") or (ctx.tp or 2) == 1:
        return
    asked = [
        name
        for name in ("flashinfer_allreduce_fusion_backend", "enable_flashinfer_allreduce_fusion")
        if ctx.given(name)
    ]
    if asked:
        yield Hit(
            "all-reduce fusion + FP4 + EAGLE: a known crash in graph capture on this version",
            informs=ctx.architecture != "GlmMoeDsaForCausalLM",
            fields=tuple(asked),
            edits=(
                *(unset(name) for name in asked),
                set_field("enforce_disable_flashinfer_allreduce_fusion", True),
            ),
        )


RULE = Rule(
    code="GRF002",
    slug="fusion-fp4-eagle",
    title="Fused all-reduce in front of an FP4 draft",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang PR 29274 (maintainer's diagnosis, closed)",
        "sgl-project/sglang PR 29485",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path GLM-5.2-NVFP4 --tensor-parallel-size 4 "
        "--quantization modelopt_fp4 --context-length 90000 --flashinfer-allreduce-fusion-backend auto "
        "--max-running-requests 16 --speculative-algorithm EAGLE --speculative-num-steps 5 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
        hw="gb300",
        gpus=4,
        version="0.5.15",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path GLM-5.2-NVFP4 --tensor-parallel-size 4 "
        "--quantization modelopt_fp4 --context-length 90000 --enforce-disable-flashinfer-allreduce-fusion"
        " --max-running-requests 16 --speculative-algorithm EAGLE --speculative-num-steps 5 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
        hw="gb300",
        gpus=4,
        version="0.5.15",
    ),
    versions=">=0.5.13,<0.5.16",
)
