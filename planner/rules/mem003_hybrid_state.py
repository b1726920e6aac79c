"""The recurrent state of a hybrid model does not fit.

What it checks:
    For models with gated delta net layers: state of all running requests (with speculation one more for each
    draft token) against what the static fraction leaves beside weights and draft.

Why:
    Each running request keeps a state of fixed size in every such layer, 45 MiB a rank for Qwen3.5-397B on four
    GPUs, and the verify step keeps one for each draft token. The pools come out empty.

Fix:
    The smallest twentieth that holds them; or fewer running requests.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.memory import draft_floor_bytes, gib, state_bytes_per_request, weight_floor_bytes

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    one, weights = state_bytes_per_request(ctx), weight_floor_bytes(ctx)
    fraction, running = ctx.asked("mem_fraction_static"), ctx.number("max_running_requests")
    if one is None or weights is None or ctx.hardware is None or not isinstance(fraction, (int, float)):
        return
    if running is None and ctx.speculates and not ctx.unread("max_running_requests"):
        running = 48
    if running is None or ctx.attention_dp is None:
        return
    states = one * max(1, running // ctx.attention_dp)
    held, memory = weights + draft_floor_bytes(ctx), ctx.hardware.memory_bytes
    if held > fraction * memory or held + states <= fraction * memory:
        return
    enough = next((step / 20 for step in range(1, 19) if step / 20 * memory > held + states), None)
    yield Hit(
        f"weights and draft need {gib(held)}, the state of {running} requests {gib(states)}: together above "
        f"{fraction:g} of {gib(memory)}; the fraction must be raised",
        fields=("mem_fraction_static", "max_running_requests"),
        edits=(set_field("mem_fraction_static", enough),) if enough else (),
    )


RULE = Rule(
    code="MEM003",
    slug="hybrid-state",
    title="The recurrent state of a hybrid model does not fit",
    consequence=Consequence.OOM,
    status=Status.ESTABLISHED,
    sources=(
        "SemiAnalysisAI/InferenceX qwen3.5_fp4_rtx6000pro_sglang_mtp.sh (56.12 + 4.05 GiB a rank; 0.65 "
        "and 0.75 fail, 0.80 works)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --quantization modelopt_fp4 --attention-backend flashinfer "
        "--mem-fraction-static 0.65 --max-running-requests 64 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="rtx_pro_6000",
        gpus=4,
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --quantization modelopt_fp4 --attention-backend flashinfer "
        "--mem-fraction-static 0.8 --max-running-requests 64 --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="rtx_pro_6000",
        gpus=4,
        version="0.5.16",
    ),
)
