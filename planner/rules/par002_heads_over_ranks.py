"""Attention heads do not divide over the ranks.

What it checks:
    Query heads that the attention-TP size (tp over attention DP) does not divide, or key-value heads that
    neither divide it nor are divided by it.

Why:
    The engine does not check this while it resolves; weight loading asserts, minutes into the start.

Fix:
    A tensor-parallel size that divides the heads; a person has to choose.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.facts is None or ctx.tp is None or not ctx.attention_dp or ctx.tp % ctx.attention_dp:
        return
    ranks = ctx.tp // ctx.attention_dp
    heads, kv_heads = ctx.facts.n_heads, ctx.facts.n_kv_heads
    if heads is not None and heads % ranks:
        yield Hit(f"{heads} heads of {ctx.model_name} do not divide over {ranks} ranks", fields=("tp_size",))
    elif kv_heads and not ctx.is_mla and kv_heads % ranks and ranks % kv_heads:
        yield Hit(f"{kv_heads} key-value heads of {ctx.model_name} do not fit {ranks} ranks", fields=("tp_size",))


RULE = Rule(
    code="PAR002",
    slug="heads-over-ranks",
    title="Attention heads do not divide over the ranks",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 run: --tp-size 3 with 64 heads passes resolution and check_server_args",
        "model config.json (num_attention_heads)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 6",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 4",
        hw="b300",
        gpus=8,
    ),
)
