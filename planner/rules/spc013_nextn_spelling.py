"""NEXTN on DeepSeek-V4.

What it checks:
    The algorithm name NEXTN on a DeepSeek-V4 model.

Why:
    One ROCm image crashed at the start of the decode server with NEXTN and ran with EAGLE. In upstream code the
    first is an alias of the second, so the fault belongs to that image.

Fix:
    Write EAGLE. Safe upstream: it is the same.

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
    if ctx.algorithm == "NEXTN" and ctx.architecture == "DeepseekV4ForCausalLM":
        yield Hit(
            "prefer EAGLE to the older spelling NEXTN for DeepSeek-V4",
            fields=("speculative_algorithm",),
            edits=(set_field("speculative_algorithm", "EAGLE"),),
        )


RULE = Rule(
    code="SPC013",
    slug="nextn-spelling",
    title="NEXTN on DeepSeek-V4",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "SemiAnalysisAI/InferenceX PR 2305 (changelog)",
        "sglang 0.5.23 srt/speculative/spec_info.py:32",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V4-Pro --tp 8 "
        "--speculative-algorithm NEXTN --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 2",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V4-Pro --tp 8 "
        "--speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 2",
    ),
    informs=True,
)
