"""Attention backend that hybrid GDN models refuse on Blackwell.

What it checks:
    A hybrid gated-delta-net model (Qwen3-Next, Qwen3.5 and later) on sm_100, sm_103 or sm_120 with an attention
    backend outside the list of the engine version.

Why:
    The engine asserts on a list that changed with versions: triton; from 0.5.6 trtllm_mha too; 0.5.11 to 0.5.15
    fa4 and flashinfer too; 0.5.16 to 0.5.22 flashinfer on sm_120 only; 0.5.23 again on both. Hopper has no such
    gate.

Fix:
    trtllm_mha on sm_100 and sm_103, triton elsewhere.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_ALLOWED = (
    ("<0.5.6", {"triton"}, {"triton"}),
    (">=0.5.6,<0.5.11", {"triton", "trtllm_mha"}, {"triton", "trtllm_mha"}),
    (
        ">=0.5.11,<0.5.16",
        {"triton", "trtllm_mha", "fa4", "flashinfer"},
        {"triton", "trtllm_mha", "fa4", "flashinfer"},
    ),
    (">=0.5.16,<0.5.23", {"triton", "trtllm_mha", "fa4"}, {"triton", "trtllm_mha", "flashinfer"}),
    (">=0.5.23", {"triton", "trtllm_mha", "fa4", "flashinfer"}, {"triton", "trtllm_mha", "flashinfer"}),
)
"""Engine versions, backends allowed on sm_100 and sm_103, backends allowed on sm_120."""


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.facts is None or ctx.facts.hybrid != "gdn" or not (ctx.sm100 or ctx.sm120):
        return
    asked = ctx.asked_attention
    possible = [row for row in _ALLOWED if ctx.within(row[0]) is not False]
    refused = [row for row in possible if asked - (row[1] if ctx.sm100 else row[2])]
    if not asked or not refused:
        return
    good = "trtllm_mha" if ctx.sm100 and ctx.within("<0.5.6") is not True else "triton"
    yield Hit(
        f"hybrid GDN model with attention backend {', '.join(sorted(asked))} on {ctx.where}: the engine refuses it",
        fields=(ctx.attention_field,),
        edits=tuple(
            set_field(name, good)
            for name in ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
            if ctx.given(name)
        ),
        suspected=len(refused) < len(possible),
        informs=possible[-1] not in refused,
    )


RULE = Rule(
    code="ATT001",
    slug="gdn-backend",
    title="Attention backend that hybrid GDN models refuse on Blackwell",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 35080",
        "srt/layers/attention/attention_registry.py of 0.5.5:202, 0.5.9:206, 0.5.11:238, 0.5.16:334, 0.5.23:44,464",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-35B-A3B --tp 1 --attention-backend flashinfer",
        hw="b300",
        gpus=1,
        version="0.5.17",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-35B-A3B --tp 1 --attention-backend flashinfer",
        hw="h200",
        gpus=1,
        version="0.5.17",
    ),
)
