"""A value that the option does not offer.

What it checks:
    A value outside the choices of the option in every engine version that the launch may run on.

Why:
    argparse compares the value with the list of choices and exits with code 2. aiconfigurator 0.12.0 writes
    --moe-runner-backend deepep_moe, which no SGLang release has ever offered.

Fix:
    The nearest choice is named; where the option has a value "auto" the argument can be taken away.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import FaultKind, RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for fault in ctx.faults:
        if fault.kind is FaultKind.BAD_CHOICE:
            grows = fault.flag in ("--tool-call-parser", "--reasoning-parser")
            exact = len(ctx.version.releases) == 1 and ctx.version.releases[0] in ctx.tables
            yield Hit(
                fault.message,
                fields=(fault.flag,),
                place=fault.place,
                edits=(unset(fault.flag),),
                safe=False,
                informs=not fault.certain or ctx.may_be_a_fork,
                suspected=len(ctx.version.releases) > 1 or (grows and not exact),
            )


RULE = Rule(
    code="FLG006",
    slug="bad-choice",
    title="A value that the option does not offer",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/choices.py",
        "aiconfigurator 0.12.0 output against sglang 0.5.16 MOE_RUNNER_BACKEND_CHOICES",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Kimi-K2.6-NVFP4 --tp 8 --moe-runner-backend deepep_moe",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Kimi-K2.6-NVFP4 --tp 8 --moe-runner-backend "
        "flashinfer_trtllm",
        version="0.5.16",
    ),
)
