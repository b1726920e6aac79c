"""Deterministic inference on a backend that is not deterministic.

What it checks:
    --enable-deterministic-inference with an attention backend outside fa3, fa4, flashinfer, triton, ascend and
    intel_xpu, or without one where the default is another.

Why:
    The engine raises. On B300 it first chooses trtllm_mla for Kimi by itself and then reports it as if it had
    been asked for.

Fix:
    Write --attention-backend triton.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_DETERMINISTIC = frozenset({"ascend", "fa3", "fa4", "flashinfer", "intel_xpu", "triton"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.on("enable_deterministic_inference"):
        return
    wrong = ctx.asked_attention - _DETERMINISTIC
    by_default = ctx.sm100 and ctx.is_mla and not ctx.asked_attention and not ctx.unread("attention_backend")
    if wrong or by_default:
        named = ", ".join(sorted(wrong)) or "trtllm_mla, the default here,"
        yield Hit(
            f"deterministic inference is refused with {named}",
            fields=(ctx.attention_field, "enable_deterministic_inference"),
            edits=(set_field("attention_backend", "triton"),),
        )


RULE = Rule(
    code="ATT016",
    slug="deterministic-backend",
    title="Deterministic inference on a backend that is not deterministic",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/overrides.py:1030",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --enable-deterministic-inference",
        hw="b300",
        gpus=8,
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend "
        "triton --enable-deterministic-inference",
        hw="b300",
        gpus=8,
        version="0.5.23",
    ),
)
