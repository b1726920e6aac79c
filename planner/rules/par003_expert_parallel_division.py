"""The expert-parallel size does not divide.

What it checks:
    ep_size that does not divide tp_size or the number of experts (plus redundant experts).

Why:
    The engine checks neither: --tp-size 8 --ep-size 3 passes and fails in the process groups or while experts
    are loaded.

Fix:
    ep_size equal to tp_size, or 1.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.tp is None or ctx.ep is None or ctx.ep <= 1 or ctx.given("moe_a2a_backend"):
        return
    experts = ctx.facts.n_experts if ctx.facts is not None else None
    redundant = ctx.number("ep_num_redundant_experts") or 0
    if ctx.tp % ctx.ep:
        yield Hit(
            f"expert parallel size {ctx.ep} does not divide tensor parallel size {ctx.tp}",
            fields=("ep_size", "tp_size"),
            edits=(set_field("ep_size", ctx.tp),),
        )
    elif experts and (experts + redundant) % ctx.ep:
        yield Hit(
            f"{experts + redundant} experts do not divide over {ctx.ep} ranks",
            fields=("ep_size",),
            edits=(unset("ep_size"),),
        )


RULE = Rule(
    code="PAR003",
    slug="expert-parallel-division",
    title="The expert-parallel size does not divide",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 run: --tp-size 8 --ep-size 3 passes resolution and check_server_args",
        "sglang srt/distributed/parallel_state.py (moe_tp_size)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --ep-size 3",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --ep-size 8",
        hw="b300",
        gpus=8,
    ),
)
