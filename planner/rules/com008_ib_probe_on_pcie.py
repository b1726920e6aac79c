"""NCCL probes the network on a single PCIe node.

What it checks:
    TP above 1 on one PCIe machine without NCCL_IB_DISABLE.

Why:
    NCCL starts its InfiniBand and RoCE plugins although one node needs none; some NIC drivers crash it there
    (bnxt_re with NCCL 2.28.9).

Fix:
    NCCL_IB_DISABLE=1 for the server. Safe on one node.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if not ctx.pcie or not ctx.on_cuda or ctx.multi_node or ctx.tp == 1 or ctx.env_reaches("NCCL_IB_DISABLE"):
        return
    yield Hit(
        "single PCIe node: NCCL_IB_DISABLE=1 keeps NCCL from probing network cards",
        fields=("tp_size", "model_path"),
        edits=(set_field("$NCCL_IB_DISABLE", "1"),),
    )


RULE = Rule(
    code="COM008",
    slug="ib-probe-on-pcie",
    title="NCCL probes the network on a single PCIe node",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "SemiAnalysisAI/InferenceX PR 2312",
        "rtx6kpro GLM-5 page (NCCL_IB_DISABLE=1 in the best known command)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --attention-backend triton --quantization modelopt_fp4 "
        "--disable-custom-all-reduce",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    good=Example(
        "NCCL_IB_DISABLE=1 python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --attention-backend triton --quantization modelopt_fp4 "
        "--disable-custom-all-reduce",
        hw="rtx_pro_6000",
        gpus=4,
    ),
    informs=True,
)
