"""A breakable prefill graph in front of an FP4 draft.

What it checks:
    The EAGLE family with FP4 weights on flashinfer_trtllm experts and --cuda-graph-backend-prefill=breakable.

Why:
    Capturing the target's prefill graph disturbs the state of the FP4 experts; the decode or draft capture that
    follows fails in cuBLAS or in the cache path. The fix that skips this graph was not merged.

Fix:
    --cuda-graph-backend-prefill disabled. Prefill is a little slower, answers are the same.

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
    if not ctx.eagle_family or ctx.text("cuda_graph_backend_prefill") != "breakable" or ctx.sm120:
        return
    if ctx.form_of_weights is not WeightForm.NVFP4:
        return
    if ctx.text("moe_runner_backend") not in (None, "auto", "flashinfer_trtllm"):
        return
    yield Hit(
        "breakable prefill graph + FP4 experts + EAGLE: a known crash in graph capture",
        fields=("cuda_graph_backend_prefill",),
        edits=(set_field("cuda_graph_backend_prefill", "disabled"),),
    )


RULE = Rule(
    code="GRF001",
    slug="prefill-graph-fp4-eagle",
    title="A breakable prefill graph in front of an FP4 draft",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang PR 29248 (maintainer's diagnosis, closed unmerged)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path GLM-5.2-NVFP4 --tensor-parallel-size 4 "
        "--quantization modelopt_fp4 --moe-runner-backend flashinfer_trtllm "
        "--cuda-graph-backend-prefill=breakable --speculative-algorithm EAGLE --speculative-num-steps 5 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
        hw="gb300",
        gpus=4,
        version="2026-06",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path GLM-5.2-NVFP4 --tensor-parallel-size 4 "
        "--quantization modelopt_fp4 --moe-runner-backend flashinfer_trtllm "
        "--cuda-graph-backend-prefill=disabled --speculative-algorithm EAGLE --speculative-num-steps 5 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
        hw="gb300",
        gpus=4,
        version="2026-06",
    ),
)
