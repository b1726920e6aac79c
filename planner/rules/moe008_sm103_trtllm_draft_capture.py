"""Draft capture at batch 128 on sm_103 with 0.5.12.

What it checks:
    FP4 experts on flashinfer_trtllm with the EAGLE family on B300 or GB300 under 0.5.12, with graphs up to 128
    requests or more.

Why:
    The draft's graph at the largest batch selects a kernel built for sm_100f and fails ("Error occurred when
    running GEMM"). Target graphs capture. 0.5.11 is free of it; flashinfer changed in between.

Fix:
    Graphs and requests up to 64, or another image.

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
    if ctx.sm != 103 or not ctx.eagle_family or not ctx.graphs_on:
        return
    if ctx.form_of_weights is not WeightForm.NVFP4 or ctx.text("moe_runner_backend") not in (None, "flashinfer_trtllm"):
        return
    graph, running = ctx.number("cuda_graph_max_bs_decode"), ctx.number("max_running_requests")
    sizes = [size for size in (graph, running) if size is not None]
    if sizes and min(sizes) < 128:
        return
    yield Hit(
        f"graphs up to {graph or 'the default'} requests: the draft's capture at 128 fails on sm_103 with 0.5.12",
        fields=("cuda_graph_max_bs_decode", "max_running_requests", "speculative_algorithm"),
        edits=(set_field("cuda_graph_max_bs_decode", 64), set_field("max_running_requests", 64)),
        suspected=not sizes or ctx.architecture != "GlmMoeDsaForCausalLM",
    )


RULE = Rule(
    code="MOE008",
    slug="sm103-trtllm-draft-capture",
    title="Draft capture at batch 128 on sm_103 with 0.5.12",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 25563",
        "SemiAnalysisAI/InferenceX PR 1420, PR 1563 (KLAUD_DEBUG.md 4b)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5-NVFP4 --tensor-parallel-size 4 "
        "--moe-runner-backend flashinfer_trtllm --fp8-gemm-backend cutlass --cuda-graph-max-bs 128 "
        "--max-running-requests 128 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="b300",
        gpus=4,
        version="0.5.12",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/GLM-5-NVFP4 --tensor-parallel-size 4 "
        "--moe-runner-backend flashinfer_trtllm --fp8-gemm-backend cutlass --cuda-graph-max-bs 64 "
        "--max-running-requests 64 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="b300",
        gpus=4,
        version="0.5.12",
    ),
    versions="==0.5.12",
)
