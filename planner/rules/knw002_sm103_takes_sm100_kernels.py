"""sm_103 takes kernels made for sm_100.

What it checks:
    Kimi-K3 on B300 or GB300.

Why:
    The engine asks for the family (major version 10) and selects kernels that only sm_100 has: Xid 13 in a BF16
    matrix kernel, an expert kernel that spins. No flag avoids it; nightlies of autumn 2026 are reported free of
    it.

Fix:
    A newer build.

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
    if ctx.sm == 103 and ctx.architecture == "KimiK3ForConditionalGeneration":
        yield Hit(
            f"Kimi-K3 on {ctx.where}: some builds select kernels that only sm_100 has",
            fields=("model_path",),
        )


RULE = Rule(
    code="KNW002",
    slug="sm103-takes-sm100-kernels",
    title="sm_103 takes kernels made for sm_100",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 34340 (core dump)",
        "sgl-project/sglang issues 32855, 34260",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K3 --tp 8 --mem-fraction-static 0.85",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K3 --tp 8 --mem-fraction-static 0.85",
        hw="b200",
        gpus=8,
    ),
    informs=True,
)
