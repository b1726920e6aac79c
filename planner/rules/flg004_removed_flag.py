"""A flag that this engine version no longer has.

What it checks:
    A flag that other versions of the engine accept and this one does not, or one that was removed before the
    oldest flag table known here.

Why:
    Removed flags are unknown to the parser, or a prefix of two new ones (ambiguous); either ends the process
    with exit code 2.

Fix:
    Write the replacement. Renames are safe; a switch that became a value is rewritten to that value.

Known problems:
    When the version is not stated and some known version accepts the flag, this is a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import FaultKind, RuleContext
from planner.rules.flag_history import removed_flag

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.diffusion:
        return
    for fault in ctx.faults:
        if fault.kind not in (FaultKind.UNKNOWN, FaultKind.AMBIGUOUS, FaultKind.REFUSED):
            continue
        known = removed_flag(fault.flag, ctx.tables)
        if known is None and fault.kind is not FaultKind.REFUSED:
            continue
        if known is None:
            yield Hit(fault.message, fields=(fault.flag,), place=fault.place, edits=(unset(fault.flag),), safe=False)
            continue
        gone = (
            f"{fault.flag} is not in this engine version ({ctx.version})"
            if ctx.version.stated
            else (f"{fault.flag} was removed or renamed in some engine versions")
        )
        yield Hit(
            f"{gone}{known.advice}",
            fields=(fault.flag,),
            place=fault.place,
            edits=known.edits(fault.flag, fault.value),
            safe=known.safe,
            informs=not fault.certain
            or ctx.launcher == "dynamo"
            or (known.gone_by is not None and ctx.within(f"<{known.gone_by}") is True),
        )


RULE = Rule(
    code="FLG004",
    slug="removed-flag",
    title="A flag that this engine version no longer has",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang flag tables 0.5.11 to 0.5.23",
        "SemiAnalysisAI/InferenceX PR 204 (--enable-ep-moe, --enable-flashinfer-trtllm-moe)",
        "sglang 0.5.23: ambiguous option: --cuda-graph-max-bs",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-max-bs 64",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-max-bs 64",
        version="0.5.16",
    ),
)
