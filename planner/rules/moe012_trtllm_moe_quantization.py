"""flashinfer_trtllm experts with a quantisation it does not take.

What it checks:
    flashinfer_trtllm with --quantization outside its list, such as awq, gptq, mxfp4 or w8a8_int8.

Why:
    The engine asserts on the list: modelopt_fp4, nvfp4_online, fp8, mxfp8, modelopt_fp8, modelopt_mixed,
    compressed-tensors, or none.

Fix:
    Take the backend away (auto).

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_TAKES = frozenset(
    {
        "modelopt_fp4",
        "nvfp4_online",
        "fp8",
        "mxfp8",
        "modelopt",
        "modelopt_fp8",
        "modelopt_mixed",
        "compressed-tensors",
    }
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.text("moe_runner_backend") == "flashinfer_trtllm" and ctx.quantization not in (None, *_TAKES):
        yield Hit(
            f"flashinfer_trtllm experts do not take {ctx.quantization}",
            fields=("moe_runner_backend", "quantization"),
            edits=(unset("moe_runner_backend"),),
        )


RULE = Rule(
    code="MOE012",
    slug="trtllm-moe-quantization",
    title="flashinfer_trtllm experts with a quantisation it does not take",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/moe_hook.py:115",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path QuixiAI/DeepSeek-R1-AWQ --tp 8 --quantization awq "
        "--moe-runner-backend flashinfer_trtllm",
        hw="b200",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --quantization fp8 "
        "--moe-runner-backend flashinfer_trtllm",
        hw="b200",
        gpus=8,
    ),
)
