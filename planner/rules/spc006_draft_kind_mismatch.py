"""The draft was made for another algorithm.

What it checks:
    A draft path whose name says EAGLE3 or DFlash under another algorithm.

Why:
    An EAGLE3 draft under EAGLE (or the reverse) either fails while the draft's config is read or runs with an
    accept length of 1: every drafted token is rejected, and the server is slower than without speculation.

Fix:
    Name the algorithm that the draft was made for.

Known problems:
    The draft's kind is taken from its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    path = ctx.text("speculative_draft_model_path")
    if path is None or ctx.algorithm is None:
        return
    name = path.rstrip("/").rsplit("/", 1)[-1].lower()
    kind = "EAGLE3" if re.search(r"eagle-?3", name) else "DFLASH" if "dflash" in name else None
    if kind is None or ctx.algorithm == kind or (kind == "DFLASH" and ctx.algorithm == "DDTREE"):
        return
    if kind == "EAGLE3" and ctx.algorithm not in ("EAGLE", "NEXTN", "STANDALONE", "DFLASH"):
        return
    yield Hit(
        f"the draft {name} is an {kind} draft, the algorithm is {ctx.algorithm}",
        fields=("speculative_algorithm", "speculative_draft_model_path"),
        edits=(set_field("speculative_algorithm", kind),),
    )


RULE = Rule(
    code="SPC006",
    slug="draft-kind-mismatch",
    title="The draft was made for another algorithm",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 25673",
        "sgl-project/sglang PR 21272 (accept length 1.00 with a mismatched draft)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --trust-remote-code "
        "--attention-backend fa3 --speculative-algorithm EAGLE --speculative-draft-model-path "
        "drafts/kimi-k2.6-eagle3 --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --trust-remote-code "
        "--attention-backend fa3 --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "drafts/kimi-k2.6-eagle3 --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
    ),
)
