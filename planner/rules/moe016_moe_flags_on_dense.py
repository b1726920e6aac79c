"""Expert settings on a model without experts.

What it checks:
    --ep-size above 1, an expert runner or an all-to-all backend on a model that is known to be dense.

Why:
    The settings have no layer to act on. They usually come from another model's launch.

Fix:
    Take them away. Safe.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_DENSE = frozenset({"Qwen3ForCausalLM", "Qwen2ForCausalLM", "LlamaForCausalLM"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.architecture not in _DENSE or ctx.is_moe:
        return
    names = [name for name in ("moe_runner_backend", "moe_a2a_backend") if ctx.given(name)]
    if (ctx.ep or 1) > 1:
        names.append("ep_size")
    if names:
        yield Hit(
            f"{ctx.model_name} has no experts: {', '.join(ctx.flag_text(name) for name in names)} has no effect",
            fields=tuple(names),
            edits=tuple(unset(name) for name in names),
        )


RULE = Rule(
    code="MOE016",
    slug="moe-flags-on-dense",
    title="Expert settings on a model without experts",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/moe_hook.py",
        "Qwen/Qwen3-32B config.json (no experts)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 4 --ep-size 4",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 4 --ep-size 4",
    ),
    informs=True,
)
