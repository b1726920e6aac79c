"""Adapter: kernel tables from an installed ``aiconfigurator-core`` (extra ``aic``), for any system and shape in it.

The package holds kernel latencies that NVIDIA measured (Apache-2.0). This module selects what a model needs and lays it
out as :class:`planner.estimate.step_cost.kernels.KernelTable`. The tables that ship with the planner were built by it
(see ``build_tables.py``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import InputError, MissingDataError, nearest_hint
from planner.estimate.step_cost.kernels import FloatArray, Grid, KernelTable

__all__ = ["build_kernel_table", "list_systems", "moe_shapes"]

_GEMM_M = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 16384)
_MOE_TOKENS = (
    *(1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 768),
    *(1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384),
)
_DISTRIBUTIONS = ("balanced", "power_law_1.01", "power_law_1.2")

MoeShape = tuple[int, int, int, int]
"""hidden, expert width, experts per token, experts."""


def _package() -> tuple[Path, Any]:
    """Folder of measurement files and ``pyarrow.parquet``.

    Raises:
        MissingDataError: the package is not installed.
    """
    try:
        core = importlib.import_module("aiconfigurator_core")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingDataError(
            "kernel tables for this shape need the package aiconfigurator-core", "pip install plan-config[aic]"
        ) from error
    return Path(str(core.__file__)).parent / "systems" / "data", parquet


def list_systems() -> list[str]:
    """Systems of the installed package."""
    root, _ = _package()
    return sorted(entry.name for entry in root.iterdir() if entry.is_dir())


def _version_key(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in "".join(c if c.isdigit() else "." for c in name).split(".") if part)


def _columns(root: Path, parquet: Any, system: str, op: str, framework: str, file: str) -> dict[str, Any] | None:
    """Columns of the newest version of one file as arrays, or None when the system has none."""
    folder = root / system / op / framework
    if not folder.is_dir():
        return None
    found = sorted((v for v in folder.iterdir() if (v / file).is_file()), key=lambda path: _version_key(path.name))
    if not found:
        return None
    table = parquet.read_table(found[-1] / file)
    return {name: np.asarray(table.column(name).to_pylist()) for name in table.column_names}


def _grid(axes: Sequence[FloatArray], points: Sequence[Any], latency_ms: FloatArray) -> Grid:
    """Place scattered points on the grid; the fastest kernel wins where several were measured; the rest is NaN."""
    values = np.full([axis.size for axis in axes], np.inf)
    keep = np.ones(latency_ms.shape, dtype=bool)
    where = []
    for axis, point in zip(axes, points, strict=True):
        position = np.clip(np.searchsorted(axis, point), 0, axis.size - 1)
        keep &= axis[position] == point
        where.append(position)
    np.minimum.at(values, tuple(position[keep] for position in where), latency_ms[keep] * 1e-3)
    values[~np.isfinite(values)] = np.nan
    return Grid(tuple(np.asarray(axis, dtype=float) for axis in axes), values)


def _axis(values: Any, allowed: Iterable[float] | None = None) -> FloatArray:
    unique = np.unique(np.asarray(values, dtype=float))
    if allowed is not None:
        unique = unique[np.isin(unique, np.asarray(sorted(allowed), dtype=float))]
    return unique[unique > 0]


def moe_shapes(system: str) -> list[MoeShape]:
    """Mixture-of-experts shapes (hidden, expert width, experts per token, experts) measured on a system."""
    root, parquet = _package()
    shapes: set[MoeShape] = set()
    for framework in ("sglang", "vllm"):
        columns = _columns(root, parquet, system, "moe", framework, "moe_perf.parquet")
        if columns is not None:
            names = ("hidden_size", "inter_size", "topk", "num_experts")
            shapes |= set(zip(*(columns[name].tolist() for name in names), strict=True))
    return sorted(shapes)


def _moe(columns: dict[str, Any], framework: str, shapes: Iterable[MoeShape], grids: dict[str, Grid]) -> None:
    for shape in shapes:
        mask = np.ones(columns["latency"].shape, dtype=bool)
        for name, value in zip(("hidden_size", "inter_size", "topk", "num_experts"), shape, strict=True):
            mask &= columns[name] == value
        part = {name: column[mask] for name, column in columns.items()}
        keys = set(
            zip(part["moe_dtype"].tolist(), part["moe_tp_size"].tolist(), part["moe_ep_size"].tolist(), strict=True)
        )
        for dtype, tp, ep in keys:
            if tp * ep > 16:
                continue
            for distribution in _DISTRIBUTIONS:
                pick = (part["moe_dtype"] == dtype) & (part["moe_tp_size"] == tp) & (part["moe_ep_size"] == ep)
                pick &= part["distribution"] == distribution
                if pick.any():
                    axis = _axis(part["num_tokens"][pick], _MOE_TOKENS)
                    key = "|".join(str(v) for v in ("moe", *shape, framework, dtype, tp, ep, distribution))
                    grids[key] = _grid([axis], [part["num_tokens"][pick]], part["latency"][pick])


def _gemm(columns: dict[str, Any], grids: dict[str, Grid]) -> None:
    for dtype in ("bfloat16", "fp8", "fp8_block", "nvfp4"):
        pick = columns["gemm_dtype"] == dtype
        if pick.any():
            points = [columns[name][pick] for name in ("m", "n", "k")]
            axes = [_axis(points[0], _GEMM_M), _axis(points[1]), _axis(points[2])]
            grids[f"gemm|{dtype}"] = _grid(axes, points, columns["latency"][pick])


def _comm(columns: dict[str, Any], grids: dict[str, Grid], *, nccl: bool) -> None:
    """Message sizes count 2-byte elements in the source; the axis here is bytes."""
    backends = columns["kernel_source"] if nccl else columns["backend"]
    dtype = columns["nccl_dtype"] if nccl else columns["allreduce_dtype"]
    half = np.isin(dtype, ("half", "bfloat16", "float16"))
    for op in np.unique(columns["op_name"]):
        for backend in np.unique(backends):
            for gpus in np.unique(columns["num_gpus"]):
                pick = half & (columns["op_name"] == op) & (backends == backend) & (columns["num_gpus"] == gpus)
                if pick.any():
                    size = 2 * columns["message_size"][pick]
                    axis = _axis(size)
                    axis = axis[axis <= 1 << 28]
                    grids[f"comm|{op}|{str(backend).lower()}|{gpus}"] = _grid([axis], [size], columns["latency"][pick])


def _unwindowed(columns: dict[str, Any]) -> Any:
    """Rows of full attention; old files have no sliding window."""
    return columns.get("window_size", np.zeros(columns["latency"].shape)) == 0


def _attention(columns: dict[str, Any], grids: dict[str, Grid], heads: Callable[[int, int, int], bool]) -> None:
    full = _unwindowed(columns)
    names = ("num_heads", "num_key_value_heads", "head_dim", "kv_cache_dtype")
    for n_heads, n_kv, head_dim, dtype in sorted(set(zip(*(columns[n][full].tolist() for n in names), strict=True))):
        if heads(n_heads, n_kv, head_dim):
            pick = full & (columns["num_heads"] == n_heads) & (columns["num_key_value_heads"] == n_kv)
            pick &= (columns["head_dim"] == head_dim) & (columns["kv_cache_dtype"] == dtype)
            points = [columns["batch_size"][pick], columns["step"][pick] + 1]
            axes = [_axis(points[0]), _axis(points[1])]
            grids[f"gqa|{n_heads}|{n_kv}|{head_dim}|{dtype}"] = _grid(axes, points, columns["latency"][pick])


def _context(
    columns: dict[str, Any], grids: dict[str, Grid], *, mla: bool, heads: Callable[[int, int, int], bool]
) -> None:
    """Prefill attention of one prompt, by its length."""
    one = (columns["batch_size"] == 1) & _unwindowed(columns)
    dtype = columns["kv_cache_dtype"]
    names = ("num_heads",) if mla else ("num_heads", "num_key_value_heads", "head_dim")
    for shape in sorted(set(zip(*(columns[n][one].tolist() for n in names), strict=True))):
        if not mla and not heads(*shape):
            continue
        pick = one & (dtype == "bfloat16")
        for name, value in zip(names, shape, strict=True):
            pick &= columns[name] == value
        if pick.any():
            key = "|".join(str(v) for v in ("ctx_mla" if mla else "ctx_gqa", *shape))
            grids[key] = _grid([_axis(columns["isl"][pick])], [columns["isl"][pick]], columns["latency"][pick])


def _mla(columns: dict[str, Any], grids: dict[str, Grid]) -> None:
    pairs = sorted(set(zip(columns["num_heads"].tolist(), columns["kv_cache_dtype"].tolist(), strict=True)))
    for n_heads, dtype in pairs:
        pick = (columns["num_heads"] == n_heads) & (columns["kv_cache_dtype"] == dtype)
        points = [columns["batch_size"][pick], columns["step"][pick] + 1]
        axes = [_axis(points[0]), _axis(points[1])]
        grids[f"mla|{n_heads}|{dtype}"] = _grid(axes, points, columns["latency"][pick])


def _bmm(columns: dict[str, Any], grids: dict[str, Grid]) -> None:
    for op in np.unique(columns["op_name"]):
        for n_heads in np.unique(columns["num_heads"]):
            pick = (columns["op_name"] == op) & (columns["num_heads"] == n_heads) & (columns["bmm_dtype"] == "bfloat16")
            if pick.any():
                tokens = columns["num_tokens"][pick]
                grids[f"bmm|{op}|{n_heads}"] = _grid([_axis(tokens)], [tokens], columns["latency"][pick])


def build_kernel_table(
    system: str,
    shapes: Iterable[MoeShape] = (),
    *,
    attention: Callable[[int, int, int], bool] = lambda n_heads, n_kv_heads, head_dim: True,
) -> KernelTable:
    """Kernel table of ``system`` (a folder name of the package, see :func:`list_systems`).

    Args:
        system: for example ``h100_sxm``.
        shapes: mixture-of-experts shapes to take (see :func:`moe_shapes`).
        attention: which grouped-query shapes (heads, KV heads, head size, all per rank) to take.

    Raises:
        MissingDataError: the package is not installed (``pip install plan-config[aic]``).
        InputError: it has no such system, or not one of the shapes.
    """
    root, parquet = _package()
    known = list_systems()
    if system not in known:
        raise InputError(f"no kernel measurements for system {system!r}", hint=nearest_hint(system, known))
    wanted = list(shapes)
    absent = [shape for shape in wanted if shape not in moe_shapes(system)]
    if absent:
        raise InputError(f"no measured MoE kernels of shape {absent[0]} (hidden, width, topk, experts) on {system}")
    grids: dict[str, Grid] = {}

    def load(op: str, framework: str, file: str) -> dict[str, Any] | None:
        return _columns(root, parquet, system, op, framework, file)

    for framework in ("sglang", "vllm"):
        if (columns := load("moe", framework, "moe_perf.parquet")) is not None:
            _moe(columns, framework, wanted, grids)
        if (columns := load("comm", framework, "custom_allreduce_perf.parquet")) is not None:
            _comm(columns, grids, nccl=False)
    if (columns := load("comm", "nccl", "nccl_perf.parquet")) is not None:
        _comm(columns, grids, nccl=True)
    if (columns := load("gemm", "sglang", "gemm_perf.parquet")) is not None:
        _gemm(columns, grids)
    if (columns := load("attention", "sglang", "generation_attention_perf.parquet")) is not None:
        _attention(columns, grids, attention)
    if (columns := load("attention", "sglang", "context_attention_perf.parquet")) is not None:
        _context(columns, grids, mla=False, heads=attention)
    if (columns := load("mla", "sglang", "generation_mla_perf.parquet")) is not None:
        _mla(columns, grids)
    if (columns := load("mla", "sglang", "context_mla_perf.parquet")) is not None:
        _context(columns, grids, mla=True, heads=attention)
    if (columns := load("mla_bmm", "sglang", "mla_bmm_perf.parquet")) is not None:
        _bmm(columns, grids)
    source = "NVIDIA aiconfigurator-core (Apache-2.0), newest framework version measured on the system"
    return KernelTable(system=system, grids=grids, source=source)
