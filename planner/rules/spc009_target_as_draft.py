"""The target is named as its own draft.

What it checks:
    A draft path equal to the model path on a model without multi-token prediction.

Why:
    The whole target is loaded a second time. There is no draft head in it, so EAGLE-type algorithms fail after
    the load, and as a plain draft it can never be faster than the target.

Fix:
    A person has to name a real draft; without one the speculative arguments can be taken away.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_SPECULATIVE = (
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    model, draft = ctx.text("model_path"), ctx.text("speculative_draft_model_path")
    if model is None or draft is None or model.rstrip("/") != draft.rstrip("/") or not ctx.speculates:
        return
    if ctx.facts is None or ctx.facts.nextn == 0:
        yield Hit(
            f"{draft} is target and draft at once and has no draft head",
            fields=("speculative_draft_model_path",),
            edits=tuple(unset(name) for name in _SPECULATIVE if ctx.given(name)),
            safe=False,
            suspected=ctx.facts is None,
        )


RULE = Rule(
    code="SPC009",
    slug="target-as-draft",
    title="The target is named as its own draft",
    consequence=Consequence.OOM,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 6875",
        "sgl-project/sglang issue 36528",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.3-70B-Instruct --tp 8 "
        "--speculative-algorithm EAGLE --speculative-draft-model-path meta-llama/Llama-3.3-70B-Instruct",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.3-70B-Instruct --tp 8 "
        "--speculative-algorithm EAGLE --speculative-draft-model-path some/EAGLE-LLaMA3.3-Instruct-70B",
    ),
)
