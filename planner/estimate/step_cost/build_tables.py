"""Rebuild the packaged kernel tables (needs the extra ``aic``):
``python -m planner.estimate.step_cost.build_tables FOLDER``.

What ships is a selection: eight systems, the mixture-of-experts shapes below, and grouped-query attention with head
sizes 64 and 128. Everything else is built on demand with :func:`planner.estimate.step_cost.aic.build_kernel_table`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from planner.estimate.step_cost.aic import MoeShape, build_kernel_table, moe_shapes
from planner.estimate.step_cost.kernels import encode_table

__all__ = ["SHAPES", "SYSTEMS", "main"]

SYSTEMS = (
    "a100_sxm",
    "b200_sxm",
    "b300_sxm",
    "gb200",
    "gb300",
    "h100_sxm",
    "h200_sxm",
    "l40s",
    "rtx_pro_6000_server",
)

SHAPES: tuple[MoeShape, ...] = (
    (7168, 2048, 8, 384),  # Kimi K2 to K2.6
    (7168, 2048, 8, 256),  # DeepSeek V3, R1
    (2048, 768, 8, 128),  # Qwen3 30B-A3B
    (4096, 1536, 8, 128),  # Qwen3 235B-A22B
    (2880, 2880, 4, 128),  # gpt-oss 120B
)


def _attention(n_heads: int, n_kv_heads: int, head_dim: int) -> bool:
    return head_dim in (64, 128) and n_kv_heads <= 8


def main(argv: Sequence[str]) -> int:
    """Write one ``.npz`` for each system into the folder given."""
    if len(argv) != 1:
        sys.stderr.write("usage: python -m planner.estimate.step_cost.build_tables FOLDER\n")
        return 2
    folder = Path(argv[0])
    for system in SYSTEMS:
        measured = set(moe_shapes(system))
        table = build_kernel_table(system, [s for s in SHAPES if s in measured], attention=_attention)
        np.savez_compressed(folder / f"{system}.npz", **encode_table(table))  # type: ignore[arg-type]
        sys.stderr.write(f"{system}: {len(table.grids)} grids\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
