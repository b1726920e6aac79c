"""Built-in multi-token prediction on a checkpoint without it.

What it checks:
    EAGLE or NEXTN without a draft path on a model whose checkpoint is known to have no multi-token-prediction
    layer.

Why:
    Without a draft path the engine looks for the draft inside the target. Where the weights are missing it
    raises (MTP layer weights missing), or it loads the target as its own draft and fails.

Fix:
    A checkpoint that keeps the layer, or a draft path; without either the speculative arguments can be taken
    away.

Known problems:
    Only checkpoints that are known by name are judged. A name that is not in the table is let pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_SPECULATIVE = (
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.algorithm not in ("EAGLE", "NEXTN") or ctx.given("speculative_draft_model_path") or ctx.open_ended:
        return
    if ctx.facts is not None and ctx.facts.nextn == 0:
        yield Hit(
            f"{ctx.algorithm} without a draft path, and {ctx.model_name} has no multi-token-prediction layer",
            fields=("speculative_algorithm",),
            edits=tuple(unset(name) for name in _SPECULATIVE if ctx.given(name)),
            safe=False,
            sources=(ctx.facts.source,),
        )


RULE = Rule(
    code="SPC005",
    slug="no-mtp-layers",
    title="Built-in multi-token prediction on a checkpoint without it",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "rtx6kpro GLM-5 page, error 7 (MTP speculative decoding layer 78 weights missing)",
        "aiconfigurator 0.12.0 emits NEXTN for nvidia/Kimi-K2.6-NVFP4 (num_nextn_predict_layers 0)",
        "sglang 0.5.16 srt/arg_groups/speculative_hook.py (draft path defaults to the target for listed "
        "architectures only)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Kimi-K2.6-NVFP4 --tp 8 "
        "--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
    ),
)
