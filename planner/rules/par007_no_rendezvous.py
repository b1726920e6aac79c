"""Several nodes without a meeting point.

What it checks:
    --nnodes above 1 without --dist-init-addr or without --node-rank.

Why:
    Without an address every node waits at its own; without a rank each believes to be the first. The start
    hangs until a timeout.

Fix:
    Give both; a person knows the address.

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
    if (ctx.number("nnodes") or 1) <= 1 or ctx.open_ended or ctx.server_reported:
        return
    if not ctx.given("dist_init_addr"):
        yield Hit("several nodes without --dist-init-addr: each waits at its own address", fields=("nnodes",))
    if not ctx.given("node_rank"):
        yield Hit(
            "several nodes without --node-rank: every node believes to be the first",
            fields=("nnodes",),
            suspected=True,
        )


RULE = Rule(
    code="PAR007",
    slug="no-rendezvous",
    title="Several nodes without a meeting point",
    consequence=Consequence.HANG,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/fields/parallel.py (dist_init_addr, node_rank 0)",
        "SGLang documentation, multi-node deployment",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 --nnodes 2 --node-rank 0",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 --nnodes 2 "
        "--node-rank 0 --dist-init-addr node0:20000",
    ),
)
