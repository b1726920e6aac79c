"""Mixed chunks are switched off by speculation.

What it checks:
    --enable-mixed-chunk with a speculative algorithm (DFLASH from 0.5.23 on has it).

Why:
    Speculative batches cannot carry prefill tokens; the engine turns the switch off with a warning in each
    speculative branch.

Fix:
    Take the flag away. Safe: it is what runs.

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
    if not ctx.on("enable_mixed_chunk") or ctx.algorithm is None:
        return
    if ctx.algorithm in ("DFLASH", "DSPARK") and ctx.within("<0.5.23") is not True:
        return
    yield Hit(
        f"--enable-mixed-chunk has no effect with {ctx.algorithm}",
        fields=("enable_mixed_chunk",),
        edits=(unset("enable_mixed_chunk"),),
    )


RULE = Rule(
    code="SCH003",
    slug="mixed-chunk-off",
    title="Mixed chunks are switched off by speculation",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.12.post1 srt/server_args.py:3713",
        "sglang 0.5.23 srt/speculative/spec_info.py:147",
        "aiconfigurator 0.12.0 output",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--max-running-requests 128 --enable-mixed-chunk --speculative-algorithm EAGLE",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--max-running-requests 128 --speculative-algorithm EAGLE",
        version="0.5.16",
    ),
)
