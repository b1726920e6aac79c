"""The draft algorithm does not run with attention data parallelism.

What it checks:
    STANDALONE or NGRAM with --enable-dp-attention, and DFLASH on engines that refuse it.

Why:
    The engine raises for these while it resolves. DFLASH is refused up to 0.5.12.post1; 0.5.23 allows it with
    --enable-dp-lm-head and SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=0 only.

Fix:
    Take --enable-dp-attention away. It changes how requests are spread, so a person should look.

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
    if not ctx.on("enable_dp_attention") or ctx.algorithm not in ("STANDALONE", "NGRAM", "DFLASH", "DDTREE"):
        return
    unsure = False
    if ctx.algorithm == "DFLASH" and ctx.within("<=0.5.12.post1") is not True:
        switched = ctx.env_value("SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION") in ("0", "false", "False")
        if ctx.on("enable_dp_lm_head") and switched:
            return
        unsure = ctx.within(">=0.5.23") is not True
    yield Hit(
        f"{ctx.algorithm} is refused together with --enable-dp-attention",
        fields=("enable_dp_attention", "speculative_algorithm"),
        edits=(unset("enable_dp_attention"), unset("dp_size")),
        safe=False,
        suspected=unsure,
    )


RULE = Rule(
    code="SPC015",
    slug="draft-with-attention-dp",
    title="The draft algorithm does not run with attention data parallelism",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/speculative_hook.py:303",
        "sglang 0.5.12.post1 srt/server_args.py:3592",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --dp 8 "
        "--enable-dp-attention --speculative-algorithm DFLASH --speculative-draft-model-path "
        "drafts/Kimi-K2.6-DFlash",
        version="0.5.12.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm"
        " DFLASH --speculative-draft-model-path drafts/Kimi-K2.6-DFlash",
        version="0.5.12.post1",
    ),
)
