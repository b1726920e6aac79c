"""The ranks do not divide over the nodes.

What it checks:
    tp_size times pp_size that the number of nodes does not divide.

Why:
    The engine asserts on it when it checks its arguments.

Fix:
    A person has to choose the sizes.

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
    if ctx.tp is None or ctx.pp is None or ctx.nnodes is None or ctx.nnodes <= 1:
        return
    if (ctx.tp * ctx.pp) % ctx.nnodes:
        yield Hit(f"{ctx.tp * ctx.pp} ranks do not divide over {ctx.nnodes} nodes", fields=("nnodes", "tp_size"))


RULE = Rule(
    code="PAR006",
    slug="nodes-division",
    title="The ranks do not divide over the nodes",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/arg_groups/validation_hook.py:180",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --nnodes 3 "
        "--node-rank 0 --dist-init-addr node0:20000",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 --nnodes 2 "
        "--node-rank 0 --dist-init-addr node0:20000",
    ),
)
