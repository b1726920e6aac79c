"""Hierarchical cache on a sparse-index model.

What it checks:
    --enable-hierarchical-cache on a DSA model (GLM-5, GLM-5.3-Flash, DeepSeek-V3.2).

Why:
    The sparse index of target and draft is not restored when pages come back from host memory: dropped tool
    calls and repetition loops after a load-back. A first fix was not enough.

Fix:
    Take --enable-hierarchical-cache away; the prefix cache then is as large as device memory allows.

Known problems:
    Reported for GLM-5.3-Flash; for other models of this kind, which have published launches with both, this is a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_HICACHE = (
    "enable_hierarchical_cache",
    "hicache_size",
    "hicache_ratio",
    "hicache_write_policy",
    "hicache_io_backend",
    "hicache_mem_layout",
    "hicache_storage_backend",
    "hicache_storage_prefetch_policy",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.on("enable_hierarchical_cache") and ctx.facts is not None and ctx.facts.attention == "dsa":
        yield Hit(
            f"hierarchical cache on {ctx.model_name}: the sparse index is not restored from host memory",
            fields=("enable_hierarchical_cache",),
            edits=tuple(unset(name) for name in _HICACHE if ctx.given(name)),
            safe=False,
            informs=ctx.architecture != "Glm5NextForConditionalGeneration",
        )


RULE = Rule(
    code="SCH005",
    slug="hicache-dsa",
    title="Hierarchical cache on a sparse-index model",
    consequence=Consequence.WRONG_OUTPUT,
    status=Status.SUSPECTED,
    sources=("sgl-project/sglang issue 38031, PR 37534, PR 38212",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path zai-org/glm-5.3-flash --tp-size 8 --ep-size 8 "
        "--mem-fraction-static 0.7 --enable-hierarchical-cache --hicache-size 140",
        hw="h100",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path zai-org/glm-5.3-flash --tp-size 8 --ep-size 8 "
        "--mem-fraction-static 0.7",
        hw="h100",
        gpus=8,
    ),
)
