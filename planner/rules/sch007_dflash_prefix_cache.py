"""DFLASH with the prefix cache on a latent-attention target.

What it checks:
    DFLASH on an MLA target with the radix cache on, on engines of mid 2026.

Why:
    Requests that hit the prefix cache crashed the server; without hits it ran. The cause is not in the report.

Fix:
    --disable-radix-cache; repeated prompts are then computed again.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm == "DFLASH" and ctx.is_mla and not ctx.on("disable_radix_cache"):
        yield Hit(
            "DFLASH crashed on prefix-cache hits with latent attention on versions of this time",
            fields=("speculative_algorithm", "enable_hierarchical_cache"),
            edits=(set_field("disable_radix_cache", True),),
            safe=False,
        )


RULE = Rule(
    code="SCH007",
    slug="dflash-prefix-cache",
    title="DFLASH with the prefix cache on a latent-attention target",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 28528",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path model/Kimi-K2.6-NVFP4 --tp 4 --max-running-requests"
        " 160 --cuda-graph-max-bs 160 --speculative-algorithm DFLASH --speculative-draft-model-path "
        "model/Kimi_K2.6_DFlash_v2 --speculative-num-draft-tokens 4",
        hw="b300",
        gpus=4,
        version="0.5.13",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path model/Kimi-K2.6-NVFP4 --tp 4 --max-running-requests"
        " 160 --cuda-graph-max-bs 160 --disable-radix-cache --speculative-algorithm DFLASH "
        "--speculative-draft-model-path model/Kimi_K2.6_DFlash_v2 --speculative-num-draft-tokens 4",
        hw="b300",
        gpus=4,
        version="0.5.13",
    ),
    versions=">=0.5.11,<0.5.19",
)
