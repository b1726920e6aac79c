"""Speculation with pipeline parallelism.

What it checks:
    --pp-size above 1 with DFLASH, or with another algorithm outside the cases that the engine has.

Why:
    DFLASH raises for every pp_size above 1. The EAGLE family runs with it only on prefill servers or with
    SGLANG_ENABLE_PP_SPEC; overlap scheduling is off too.

Fix:
    pp_size 1; a person has to find the GPUs.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.pp is None or ctx.pp <= 1 or ctx.algorithm is None:
        return
    if ctx.eagle_family:
        allowed = ctx.text("disaggregation_mode") == "prefill" or ctx.env_reaches("SGLANG_ENABLE_PP_SPEC")
        if allowed:
            return
    yield Hit(
        f"{ctx.algorithm} with pipeline parallelism {ctx.pp} is refused",
        fields=("pp_size", "speculative_algorithm"),
        edits=(unset("pp_size"),),
        safe=False,
        suspected=ctx.eagle_family and ctx.within(">=0.5.23") is not True,
    )


RULE = Rule(
    code="PAR013",
    slug="speculation-with-pp",
    title="Speculation with pipeline parallelism",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:321, validation_hook.py:119",
        "sglang 0.5.12.post1 srt/server_args.py:3597",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 4 --pp-size 2 "
        "--speculative-algorithm DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 4 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        version="0.5.23",
    ),
)
