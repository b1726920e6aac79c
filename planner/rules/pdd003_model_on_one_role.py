"""Prefill and decode servers load different models.

What it checks:
    Prefill and decode launches of one file with different model paths.

Why:
    The cache of one model means nothing to another; layer counts differ and the transfer fails, or the answers
    are wrong.

Fix:
    Name the same model.

Known problems:
    Two paths may lead to the same weights; only the last part of the path is compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for prefill, decode in ctx.role_pairs():
        one, other = prefill.text("model_path"), decode.text("model_path")
        if one is None or other is None:
            continue
        if one.rstrip("/").rsplit("/", 1)[-1].lower() != other.rstrip("/").rsplit("/", 1)[-1].lower():
            yield Hit(
                f"prefill loads {one}, decode loads {other}",
                fields=("model_path",),
                place=decode.place_of("model_path"),
                suspected=True,
            )


RULE = Rule(
    code="PDD003",
    slug="model-on-one-role",
    title="Prefill and decode servers load different models",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/disaggregation/base/conn.py",
        "SGLang documentation, PD disaggregation",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode prefill --tp 8 &\n"
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --disaggregation-mode decode --tp 8\n",
        form="bash",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode prefill --tp 8 &\n"
        "python3 -m sglang.launch_server --model-path /models/DeepSeek-R1 --disaggregation-mode decode --tp 8\n",
        form="bash",
    ),
    per_file=True,
)
