"""An engine variable is assigned but not exported.

What it checks:
    Variables of the engine, NCCL or CUDA that a script assigns on a line of their own without export.

Why:
    A plain assignment is a shell variable; the server is another process and does not see it, so the setting
    has no effect.

Fix:
    Put export before it, or write it before the command. The server then runs with a setting that it ran
    without.

Known problems:
    A variable that the caller has already exported keeps its export; hence a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_OURS = ("SGLANG_", "SGL_", "NCCL_", "CUDA_", "FLASHINFER_", "TORCH_CUDA_", "PYTORCH_", "NVSHMEM_", "MOONCAKE_")


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for name, variable in ctx.env.items():
        if not variable.exported and name.startswith(_OURS):
            yield Hit(
                f"{name} is assigned but not exported: the server does not see it",
                fields=(f"${name}",),
                place=variable.place,
            )


RULE = Rule(
    code="FRM005",
    slug="env-not-exported",
    title="An engine variable is assigned but not exported",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "POSIX.1-2017 Shell Command Language 2.12",
        "SemiAnalysisAI/InferenceX dsr1_fp8_b200_mtp.sh (SGLANG_ENABLE_SPEC_V2=1)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "NCCL_NVLS_ENABLE=1\npython3 -m sglang.launch_server --model-path Qwen/Qwen3-8B\n",
        form="bash",
    ),
    good=Example(
        "export NCCL_NVLS_ENABLE=1\npython3 -m sglang.launch_server --model-path Qwen/Qwen3-8B\n",
        form="bash",
    ),
    informs=True,
)
