"""N-gram speculation with flashinfer and graph replay on sm_120.

What it checks:
    NGRAM with flashinfer attention and CUDA graphs on an RTX PRO 6000 or RTX 5090.

Why:
    One operator saw illegal accesses every two to five hours of traffic; the cause is open.

Fix:
    Another attention backend, or graphs off. Both cost speed, so a person should choose.

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
    if ctx.algorithm == "NGRAM" and ctx.sm120 and ctx.graphs_on and "flashinfer" in ctx.attention_backends:
        yield Hit(
            f"NGRAM with flashinfer and graphs on {ctx.where}: reported to crash every few hours",
            fields=("speculative_algorithm", ctx.attention_field),
            edits=(set_field("attention_backend", "triton"),),
            safe=False,
        )


RULE = Rule(
    code="SPC023",
    slug="ngram-flashinfer-graphs",
    title="N-gram speculation with flashinfer and graph replay on sm_120",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 24361",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --attention-backend flashinfer "
        "--max-running-requests 16 --speculative-algorithm NGRAM --speculative-num-draft-tokens 8",
        hw="rtx_pro_6000",
        gpus=1,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --attention-backend flashinfer "
        "--max-running-requests 16 --speculative-algorithm NGRAM --speculative-num-draft-tokens 8",
        hw="h100",
        gpus=1,
    ),
)
