"""An NCCL variable that the flag overrides.

What it checks:
    NCCL_NVLS_ENABLE=0 (or NCCL_CUMEM_ENABLE=0) set for the server beside --enable-nccl-nvls or
    --enable-symm-mem.

Why:
    With either flag the engine writes the variables itself, whatever the environment says.

Fix:
    Take the variable away, or the flag; a person should choose.

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
    flags = [name for name in ("enable_nccl_nvls", "enable_symm_mem") if ctx.on(name)]
    if not flags:
        return
    for name in ("NCCL_NVLS_ENABLE", "NCCL_CUMEM_ENABLE"):
        if ctx.env_value(name) == "0":
            yield Hit(
                f"{name}=0 is overridden by {ctx.flag_text(flags[0])}",
                fields=(f"${name}", flags[0]),
                edits=(unset(f"${name}"),),
                safe=False,
            )


RULE = Rule(
    code="ENV003",
    slug="nvls-env-overridden",
    title="An NCCL variable that the flag overrides",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=("sglang 0.5.23 srt/entrypoints/engine.py:1898,1907",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "NCCL_NVLS_ENABLE=0 python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 "
        "--enable-nccl-nvls",
        hw="b300",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --enable-nccl-nvls",
        hw="b300",
        gpus=8,
    ),
)
