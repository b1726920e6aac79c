"""Without SGLANG_ENABLE_SPEC_V2 the draft loads the whole model again.

What it checks:
    NEXTN or EAGLE without a draft path on a GLM-5 (DSA) checkpoint whose weights do not fit twice, where the
    variable is not set for the server.

Why:
    On engines of that period (before 0.5.11, which made the second version the default) the first draft worker
    loaded the complete checkpoint a second time: 57 GB twice on a 96 GB GPU.

Fix:
    Set SGLANG_ENABLE_SPEC_V2=True for the server. From 0.5.15 on the variable is gone and the second version is
    the only one.

Known problems:
    An image of one's own may set the variable inside; then this is one level lower.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.memory import gib, weight_floor_bytes

__all__ = ["RULE"]

_ON = ("1", "true", "yes", "y", "t", "on")


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm not in ("EAGLE", "NEXTN") or ctx.given("speculative_draft_model_path"):
        return
    if ctx.architecture != "GlmMoeDsaForCausalLM" or ctx.hardware is None:
        return
    variable = ctx.env.get("SGLANG_ENABLE_SPEC_V2")
    if variable is not None and variable.exported and (variable.value is None or variable.value.lower() in _ON):
        return
    weights = weight_floor_bytes(ctx)
    if weights is None or 2 * weights < ctx.hardware.memory_bytes:
        return
    yield Hit(
        f"SGLANG_ENABLE_SPEC_V2 is not set: the draft loads the model again, 2 x {gib(weights)} on "
        f"{gib(ctx.hardware.memory_bytes)}",
        fields=("speculative_algorithm",),
        edits=(set_field("$SGLANG_ENABLE_SPEC_V2", "True"),),
        suspected=not ctx.env_complete,
    )


RULE = Rule(
    code="SPC019",
    slug="draft-loads-target-twice",
    title="Without SGLANG_ENABLE_SPEC_V2 the draft loads the whole model again",
    consequence=Consequence.OOM,
    status=Status.ESTABLISHED,
    sources=(
        "rtx6kpro GLM-5 page",
        "sglang 0.5.9 srt/environ.py (default False), 0.5.11 srt/environ.py:459 (default True), "
        "0.5.15.post1 srt/arg_groups/speculative_hook.py:75 (removed)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 --quantization modelopt_fp4 "
        "--kv-cache-dtype bf16 --mem-fraction-static 0.85 --speculative-algorithm NEXTN "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="rtx_pro_6000",
        gpus=8,
        version="2026-03",
    ),
    good=Example(
        "SGLANG_ENABLE_SPEC_V2=True python3 -m sglang.launch_server --model-path GLM-5-NVFP4-MTP --tp 8 "
        "--quantization modelopt_fp4 --kv-cache-dtype bf16 --mem-fraction-static 0.85 "
        "--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
        hw="rtx_pro_6000",
        gpus=8,
        version="2026-03",
    ),
    versions="<0.5.11",
)
