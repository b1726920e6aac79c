"""A full draft tree without the attention path it needs.

What it checks:
    DDTREE in the form of pull request 29907 with a page size other than 1, or with a budget beyond the spine
    and an attention backend other than triton.

Why:
    The proposal raises for both. On B300 the engine's own default for Kimi is trtllm_mla with page 64, so the
    launch must say triton and page 1 itself.

Fix:
    Write --attention-backend triton --page-size 1.

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
    if ctx.algorithm != "DDTREE" or ctx.dialect not in ("pr29907", "field", "rancy-wang"):
        return
    page = ctx.number("page_size")
    unsure = ctx.dialect != "pr29907"
    if page is not None and page != 1:
        yield Hit(
            f"DDTREE needs page size 1, not {page}",
            fields=("page_size",),
            edits=(set_field("page_size", 1),),
            suspected=unsure,
        )
    budget = ctx.number("speculative_ddtree_budget")
    block = ctx.drafter.block_size if ctx.drafter is not None else ctx.number("speculative_num_draft_tokens")
    full = budget is None or block is None or budget > block - 1
    other = sorted(ctx.attention_backends - {"triton"}) if ctx.asked_attention or ctx.sm100 else []
    if full and other:
        yield Hit(
            f"a full tree needs the triton attention backend, here {', '.join(other)} runs",
            fields=(ctx.attention_field,),
            edits=(set_field("attention_backend", "triton"), set_field("page_size", 1)),
            suspected=unsure,
        )


RULE = Rule(
    code="SPC022",
    slug="tree-backend",
    title="A full draft tree without the attention path it needs",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang PR 29907, _handle_ddtree, commit 93e9850e",
        "sglang 0.5.23 srt/arg_groups/model_overrides/deepseek_v2.py:185",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend "
        "trtllm_mla --speculative-algorithm DDTREE --speculative-draft-model-path drafts/Kimi-K2.6-DFlash"
        " --speculative-num-draft-tokens 8 --speculative-ddtree-budget 16",
        version="2026-07",
        dialect="pr29907",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend "
        "triton --page-size 1 --speculative-algorithm DDTREE --speculative-draft-model-path "
        "drafts/Kimi-K2.6-DFlash --speculative-num-draft-tokens 8 --speculative-ddtree-budget 16",
        version="2026-07",
        dialect="pr29907",
    ),
)
