"""The engine would refuse this launch.

What it checks:
    The engine's own resolution of the launch on this machine, as far as it is written out here.

Why:
    SGLang raises while it resolves its arguments; the message is its own.

Fix:
    See the message; no edit is offered because the engine only says what it refuses.

Known problems:
    A version between two known ones follows the older rules; then this is one level lower. It is not reported
    beside another error of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


_HARMLESS = frozenset({"model_path", "tokenizer_path", "host", "port", "served_model_name", "node_rank"})
"""Arguments whose value decides no refusal: the launch is judged although they cannot be read."""


def _check(ctx: RuleContext) -> Iterator[Hit]:
    resolution = ctx.resolution
    if resolution is None or resolution.error is None or ctx.diffusion:
        return
    if ctx.algorithm == "DDTREE" and ctx.dialect is None:
        return
    if ctx.open_ended or ctx.launch.unknown - _HARMLESS:
        return
    error = resolution.error
    yield Hit(
        f"{error.error_type}: {error.message}",
        fields=tuple(name for name in ctx.asked_values if name in error.message),
        suspected=not resolution.engine_version.exact,
        sources=(error.source,) if error.source else (),
    )


RULE = Rule(
    code="ENG001",
    slug="engine-refuses",
    title="The engine would refuse this launch",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups (all hooks)",
        "sglang 0.5.12.post1 srt/server_args.py",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --moe-dp-size 3",
        hw="b300",
        gpus=8,
        model="kimi-k2.6",
        version="0.5.23",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8",
        hw="b300",
        gpus=8,
        model="kimi-k2.6",
        version="0.5.23",
    ),
)
