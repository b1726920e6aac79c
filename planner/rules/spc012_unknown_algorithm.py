"""An algorithm that the engine does not know.

What it checks:
    A --speculative-algorithm that is neither built in nor DDTREE.

Why:
    Newer engines take any text and raise "Unknown speculative algorithm name" while they resolve; older ones
    compare with a list.

Fix:
    The nearest name is written when one is near. A plugin may register further names.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.errors import nearest
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_KNOWN = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO", "FROZEN_KV_MTP", "DDTREE")


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm is None or ctx.algorithm in _KNOWN:
        return
    near = nearest(ctx.algorithm, _KNOWN, n=1)
    yield Hit(
        f"unknown speculative algorithm {ctx.algorithm}" + (f"; did you mean {near[0]}?" if near else ""),
        fields=("speculative_algorithm",),
        edits=(set_field("speculative_algorithm", near[0]),) if near else (),
        suspected=not near,
    )


RULE = Rule(
    code="SPC012",
    slug="unknown-algorithm",
    title="An algorithm that the engine does not know",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/speculative/spec_info.py:65",
        "sglang 0.5.11 srt/server_args.py:5367",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --speculative-algorithm EAGEL",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --speculative-algorithm EAGLE",
        version="0.5.23",
    ),
)
