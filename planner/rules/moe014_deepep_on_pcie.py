"""DeepEP on GPUs without NVLink.

What it checks:
    --moe-a2a-backend deepep (or its successors) on a machine whose GPUs are linked by PCIe only.

Why:
    DeepEP's kernels move tokens through NVLink peers and NVSHMEM; on PCIe boxes without peer access its buffers
    cannot be set up.

Fix:
    Take the backend away.

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
    backend = ctx.text("moe_a2a_backend")
    if backend in ("deepep", "deepep_v2", "mooncake", "megamoe") and ctx.pcie:
        yield Hit(
            f"{backend} needs NVLink between the GPUs; {ctx.where} has PCIe",
            fields=("moe_a2a_backend",),
            edits=(unset("moe_a2a_backend"),),
        )


RULE = Rule(
    code="MOE014",
    slug="deepep-on-pcie",
    title="DeepEP on GPUs without NVLink",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "deepseek-ai/DeepEP README (NVLink within a node, RDMA between nodes)",
        "sgl-project/sglang PR 4767",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 8 "
        "--quantization fp8 --attention-backend triton --moe-a2a-backend deepep",
        hw="rtx_pro_6000",
        gpus=8,
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 8 "
        "--quantization fp8 --moe-a2a-backend deepep",
        hw="h200",
        gpus=8,
    ),
)
