"""Tree speculation that no release has.

What it checks:
    --speculative-algorithm DDTREE, or a tree flag of one of its proposals, when no build that has it is named.

Why:
    No SGLang release up to 0.5.23 knows DDTREE: it raises "Unknown speculative algorithm name". Proposals and
    forks disagree on flags and on what num_draft_tokens means.

Fix:
    Name the build with --dialect; on a released engine the chain (DFLASH) is what remains.

Known problems:
    When neither version nor dialect is stated the launch may be for a fork; then this is one level lower.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm != "DDTREE" or ctx.dialect not in (None, "upstream"):
        return
    stated = ctx.version.stated and len(ctx.version.releases) == 1
    yield Hit(
        "DDTREE is in no SGLang release; name the build that has it with --dialect",
        fields=("speculative_algorithm",),
        suspected=ctx.dialect is None and not stated,
    )


RULE = Rule(
    code="SPC011",
    slug="tree-not-released",
    title="Tree speculation that no release has",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.12.post1 and 0.5.23 run: Unknown speculative algorithm name: DDTREE",
        "sgl-project/sglang issue 22887, PR 29907, PR 36196",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend "
        "triton --page-size 1 --speculative-algorithm DDTREE --speculative-draft-model-path "
        "drafts/Kimi-K2.6-DFlash --speculative-num-draft-tokens 9",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend "
        "triton --page-size 1 --speculative-algorithm DDTREE --speculative-draft-model-path "
        "drafts/Kimi-K2.6-DFlash --speculative-num-draft-tokens 9 --speculative-eagle-topk 4",
        version="2026-05",
        dialect="field",
    ),
)
