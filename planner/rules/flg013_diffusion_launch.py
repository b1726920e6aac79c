"""The launch is for SGLang's image and video server.

What it checks:
    A launch whose model or flags belong to the diffusion server (sglang.multimodal_gen), which has its own set
    of flags.

Why:
    The language-model flag table does not apply there. Flags of the language server, such as
    --served-model-name, are rejected by it.

Fix:
    --model-id replaces --served-model-name there; the rest is not reviewed.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.diffusion:
        return
    refused = [given for given in ctx.flags if given.flag == "--served-model-name"]
    if refused:
        yield Hit(
            "this is a launch of the diffusion server, which does not take --served-model-name; its name for "
            "it is --model-id",
            fields=("served_model_name",),
            place=refused[0].place,
        )
    else:
        yield Hit("this is a launch of the diffusion server: language-model rules are not applied", informs=True)


RULE = Rule(
    code="FLG013",
    slug="diffusion-launch",
    title="The launch is for SGLang's image and video server",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 34226",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "sglang serve --model-path models/MiniMax-H3 --num-gpus 8 --ulysses-degree 8 --served-model-name minimax-h3",
    ),
    good=Example(
        "sglang serve --model-path Qwen/Qwen3-8B --served-model-name qwen3",
    ),
)
