"""All-reduce fusion is switched on by itself on sm_120.

What it checks:
    TP above 1 on one node of sm_120 with a model of the engine's list, under the release whose default included
    sm_120.

Why:
    The default took every Blackwell GPU for one with the kernel; flashinfer compiles it for sm_90 and sm_100
    only, and graph capture ends in "No supported CUDA architectures found for major versions [9, 10]".

Fix:
    Another release; that version has no switch against it, so graphs would have to be off.

Known problems:
    A development build of December 2025 is judged like 0.5.7, which it led to.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_LISTED = frozenset(
    {
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "GptOssForCausalLM",
        "Glm4MoeForCausalLM",
        "Qwen3MoeForCausalLM",
    }
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    releases = ctx.version.releases
    if not releases or releases[-1] != "0.5.7" or not ctx.sm120 or ctx.tp == 1 or ctx.multi_node or not ctx.graphs_on:
        return
    if ctx.on("enable_dp_attention") or ctx.given("moe_a2a_backend"):
        return
    asked = ctx.on("enable_flashinfer_allreduce_fusion")
    if ctx.architecture not in _LISTED and not asked:
        return
    how = "is asked for" if asked else "is switched on by this version itself"
    yield Hit(
        f"all-reduce fusion {how} on {ctx.where}, where it has no kernel",
        fields=("enable_flashinfer_allreduce_fusion", "tp_size", "model_path"),
        edits=(unset("enable_flashinfer_allreduce_fusion"),) if asked and ctx.architecture not in _LISTED else (),
        suspected=ctx.tp is None or (asked and ctx.architecture not in _LISTED),
    )


RULE = Rule(
    code="COM003",
    slug="fusion-default-sm120",
    title="All-reduce fusion is switched on by itself on sm_120",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 15650, PR 16283",
        "sglang 0.5.7 srt/server_args.py:1470 (0.5.6.post2 and 0.5.9 lack or narrow it)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-120b --tp 4",
        hw="rtx_pro_6000",
        gpus=4,
        version="0.5.7",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-120b --tp 4 --max-running-requests 64",
        hw="rtx_pro_6000",
        gpus=4,
        version="0.5.9",
    ),
    versions="<0.5.8",
)
