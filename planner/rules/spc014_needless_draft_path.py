"""A draft path that the target does not need.

What it checks:
    EAGLE or NEXTN with a NextN draft path on a DeepSeek-V3-type target, whose checkpoint carries the layer.

Why:
    Current engines read the multi-token-prediction layer from the target and warn about the path; a separate
    export was needed in early 2025 only.

Fix:
    Take the path away. Safe on engines from 0.4.7 on.

Known problems:
    None known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    path = ctx.text("speculative_draft_model_path")
    if path is None or ctx.algorithm not in ("EAGLE", "NEXTN") or not (ctx.facts is not None and ctx.facts.nextn):
        return
    same = path.rstrip("/") == (ctx.text("model_path") or "").rstrip("/")
    if same or re.search(r"nextn|mtp", path.lower()):
        yield Hit(
            f"{ctx.model_name} carries its own multi-token-prediction layer: the draft path is not needed",
            fields=("speculative_draft_model_path",),
            edits=(unset("speculative_draft_model_path"),),
        )


RULE = Rule(
    code="SPC014",
    slug="needless-draft-path",
    title="A draft path that the target does not need",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:1150",
        "sgl-project/sglang issue 6296",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm EAGLE --speculative-draft-model-path drafts/DeepSeek-V3-0324-NextN "
        "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 2",
    ),
    informs=True,
)
