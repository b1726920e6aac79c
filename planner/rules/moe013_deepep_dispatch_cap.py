"""DeepEP's dispatch buffer is smaller than a verify step.

What it checks:
    DeepEP in low-latency mode with SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK set below requests per rank
    times tokens per request of a verify step.

Why:
    Capture fails in deep_ep.cpp when a graph dispatches more tokens than the buffer holds; a recipe had to
    halve everything related to tokens by hand when speculation came in.

Fix:
    Raise the variable to the product, or lower graph batch or draft tokens.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_NAME = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"


def _check(ctx: RuleContext) -> Iterator[Hit]:
    cap = ctx.env_value(_NAME)
    if ctx.text("moe_a2a_backend") != "deepep" or ctx.text("deepep_mode") == "normal" or not (cap or "").isdigit():
        return
    graph, running, dp = ctx.number("cuda_graph_max_bs_decode"), ctx.number("max_running_requests"), ctx.attention_dp
    width = ctx.q_len
    if graph is None or width is None or dp is None or cap is None:
        return
    rows = (min(graph, max(1, running // dp)) if running is not None else graph) * width
    if rows > int(cap):
        yield Hit(
            f"a verify step dispatches up to {rows} tokens a rank, the DeepEP buffer holds {cap}",
            fields=(f"${_NAME}", "cuda_graph_max_bs_decode"),
            edits=(set_field(f"${_NAME}", str(rows)),),
        )


RULE = Rule(
    code="MOE013",
    slug="deepep-dispatch-cap",
    title="DeepEP's dispatch buffer is smaller than a verify step",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 29942 (512 against 768 tokens a rank)",
        "ishandhanani/srt-slurm PR 48 (cap 1024)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=256 python3 -m sglang.launch_server --model-path "
        "deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 --ep-size 8 --enable-dp-attention --moe-a2a-backend deepep"
        " --cuda-graph-max-bs 128 --max-running-requests 1024 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=512 python3 -m sglang.launch_server --model-path "
        "deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 --ep-size 8 --enable-dp-attention --moe-a2a-backend deepep"
        " --cuda-graph-max-bs 128 --max-running-requests 1024 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="b300",
        gpus=8,
    ),
)
