"""Kernel latencies of one system as regular grids, and their interpolation.

A grid is a dense array of seconds over sorted axes (tokens, bytes, batch ...). Lookups are linear in the logarithms of
the axes and of the latency. Latencies are made monotone along every axis before use: measured tables are not (routing
noise, kernel changes), and a search would exploit a dip. Above its axes a curve continues at the slope of its last two
points, below them it is flat; the caller learns which points were outside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record

__all__ = [
    "FloatArray",
    "Grid",
    "KernelTable",
    "at_point",
    "bilinear",
    "decode_table",
    "encode_table",
    "interpolate_log",
    "monotone",
]

FloatArray = NDArray[np.float64]

_CODES_PER_OCTAVE = 3000
"""Latencies are stored as 16-bit logarithms: one step is 0.023 %."""


@record(eq=False)
class Grid:
    """Latency over regular axes: ``axes`` sorted ascending and above zero, ``latency_s`` of that shape."""

    axes: tuple[FloatArray, ...]
    latency_s: FloatArray


def monotone(latency_s: ArrayLike) -> FloatArray:
    """The same curve without dips, shape kept: the mean of the running maximum from below and the running minimum from
    above, along each axis in turn. A monotone input is returned unchanged."""
    values = np.array(latency_s, dtype=float)
    for axis in range(values.ndim):
        rising = np.maximum.accumulate(values, axis=axis)
        falling = np.flip(np.minimum.accumulate(np.flip(values, axis=axis), axis=axis), axis=axis)
        values = np.sqrt(rising * falling)
    return values


def _fill(values: FloatArray, axis_values: FloatArray, axis: int) -> FloatArray:
    """Replace NaN along one axis by interpolation in log-log; a line without any value stays NaN."""
    moved = np.moveaxis(values, axis, -1)
    flat = moved.reshape(-1, moved.shape[-1]).copy()
    finite = np.isfinite(flat)
    for row in np.flatnonzero(finite.any(axis=1) & ~finite.all(axis=1)):
        line, known = flat[row], finite[row]
        line[~known] = np.exp(np.interp(np.log(axis_values[~known]), np.log(axis_values[known]), np.log(line[known])))
    return np.moveaxis(flat.reshape(moved.shape), -1, axis)


def interpolate_log(axis_values: FloatArray, latency_s: FloatArray, at: ArrayLike) -> FloatArray:
    """One-dimensional log-log interpolation; ``at`` of any shape.

    Above the last axis value the last slope continues (at least 0, at most 1: nothing costs more than in proportion
    once the work is the only cost); below the first the latency is the first one.
    """
    x = np.log(np.asarray(at, dtype=float))
    log_axis, log_latency = np.log(axis_values), np.log(latency_s)
    inside = np.interp(x, log_axis, log_latency)
    if axis_values.size > 1:
        slope = (log_latency[-1] - log_latency[-2]) / (log_axis[-1] - log_axis[-2])
        inside = inside + min(max(slope, 0.0), 1.0) * np.maximum(x - log_axis[-1], 0.0)
    return np.asarray(np.exp(inside))


@record(eq=False)
class KernelTable:
    """All grids of one system. Keys are ``op|...`` as written by :mod:`planner.estimate.step_cost.aic`."""

    system: str
    grids: Mapping[str, Grid] = field(repr=False)
    source: str = ""

    def get(self, *parts: object) -> Grid | None:
        """The grid of ``op|part|part``, or None."""
        return self.grids.get("|".join(str(part) for part in parts))

    def curve(self, *parts: object) -> tuple[FloatArray, FloatArray] | None:
        """Axis and monotone latency of a one-dimensional grid, or None."""
        grid = self.get(*parts)
        if grid is None:
            return None
        return grid.axes[0], monotone(grid.latency_s)

    def keys(self, *prefix: object) -> list[tuple[str, ...]]:
        """Keys below a prefix, split into parts, sorted."""
        head = "|".join(str(part) for part in prefix) + "|"
        return sorted(tuple(key.split("|")) for key in self.grids if key.startswith(head))


def encode_table(table: KernelTable) -> dict[str, NDArray[np.generic]]:
    """Arrays for ``numpy.savez_compressed``: a JSON index and one array of 16-bit log latencies."""
    axes: dict[tuple[float, ...], int] = {}
    index: list[tuple[str, tuple[int, ...]]] = []
    blobs: list[NDArray[np.uint16]] = []
    for key in sorted(table.grids):
        grid = table.grids[key]
        ids = tuple(axes.setdefault(tuple(float(v) for v in axis), len(axes)) for axis in grid.axes)
        index.append((key, ids))
        with np.errstate(invalid="ignore"):
            code = np.round((np.log2(grid.latency_s * 1e6) + 1.0) * _CODES_PER_OCTAVE) + 1
        blobs.append(np.where(np.isfinite(code), np.clip(code, 1, 65535), 0).astype(np.uint16).ravel())
    header = {"system": table.system, "source": table.source, "axes": [list(axis) for axis in axes], "grids": index}
    text = np.frombuffer(json.dumps(header, separators=(",", ":")).encode(), dtype=np.uint8)
    return {"header": text, "codes": np.concatenate(blobs) if blobs else np.zeros(0, dtype=np.uint16)}


class _LazyGrids(Mapping[str, Grid]):
    """Grids decoded from the packed codes when they are asked for: a model needs a few of some hundred."""

    def __init__(
        self, axes: Sequence[FloatArray], index: Iterable[tuple[str, Sequence[int]]], codes: FloatArray
    ) -> None:
        self._axes = axes
        self._codes = codes
        self._where: dict[str, tuple[Sequence[int], int]] = {}
        start = 0
        for key, ids in index:
            self._where[key] = (ids, start)
            size = 1
            for axis_id in ids:
                size *= axes[axis_id].size
            start += size
        self._decoded: dict[str, Grid] = {}

    def __getitem__(self, key: str) -> Grid:
        if key not in self._decoded:
            ids, start = self._where[key]
            axes = tuple(self._axes[i] for i in ids)
            shape = tuple(axis.size for axis in axes)
            raw = self._codes[start : start + int(np.prod(shape))].astype(float).reshape(shape)
            values = np.where(raw > 0, 2.0 ** ((raw - 1) / _CODES_PER_OCTAVE - 1.0) * 1e-6, np.nan)
            if not raw.all():
                for axis, axis_values in enumerate(axes):
                    values = _fill(values, axis_values, axis)
            values.setflags(write=False)
            self._decoded[key] = Grid(axes, values)
        return self._decoded[key]

    def __iter__(self) -> Iterable[str]:  # type: ignore[override]
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, key: object) -> bool:
        return key in self._where


def decode_table(arrays: Mapping[str, NDArray[np.generic]]) -> KernelTable:
    """The inverse of :func:`encode_table`; missing points are filled along the axes. Grids decode on first use."""
    header = json.loads(bytes(np.asarray(arrays["header"], dtype=np.uint8)).decode())
    axes = [np.asarray(axis, dtype=float) for axis in header["axes"]]
    grids = _LazyGrids(axes, header["grids"], np.asarray(arrays["codes"]))
    return KernelTable(system=header["system"], grids=grids, source=header["source"])


def at_point(values: FloatArray, x_axis: FloatArray, y_axis: FloatArray, x: float, y: float) -> FloatArray:
    """:func:`bilinear` at one point."""
    i, i_next, u = _place(x_axis, x)
    j, j_next, v = _place(y_axis, y)
    low = values[..., i, j] * (1 - v) + values[..., i, j_next] * v
    high = values[..., i_next, j] * (1 - v) + values[..., i_next, j_next] * v
    return np.asarray(low * (1 - u) + high * u)


def _place(axis: FloatArray, at: float) -> tuple[int, int, float]:
    """Indices of the neighbours of ``at`` on an axis, and its part of the way between them, 0 to 1."""
    i = min(max(int(np.searchsorted(axis, at, side="right")) - 1, 0), max(axis.size - 2, 0))
    following = min(i + 1, axis.size - 1)
    width = float(axis[following] - axis[i]) if following > i else 1.0
    return i, following, min(max((at - float(axis[i])) / width, 0.0), 1.0)


def bilinear(
    values: FloatArray, x_axis: FloatArray, y_axis: FloatArray, x: FloatArray | float, y: FloatArray | float
) -> FloatArray:
    """Linear interpolation over the last two axes of ``values``, clipped to the axes."""
    x_array, y_array = np.asarray(x, float), np.asarray(y, float)
    i = np.clip(np.searchsorted(x_axis, x_array, side="right") - 1, 0, max(x_axis.size - 2, 0))
    j = np.clip(np.searchsorted(y_axis, y_array, side="right") - 1, 0, max(y_axis.size - 2, 0))
    i_next, j_next = np.minimum(i + 1, x_axis.size - 1), np.minimum(j + 1, y_axis.size - 1)
    u = np.clip((x_array - x_axis[i]) / np.where(i_next > i, x_axis[i_next] - x_axis[i], 1.0), 0.0, 1.0)
    v = np.clip((y_array - y_axis[j]) / np.where(j_next > j, y_axis[j_next] - y_axis[j], 1.0), 0.0, 1.0)
    low = values[..., i, j] * (1 - v) + values[..., i, j_next] * v
    high = values[..., i_next, j] * (1 - v) + values[..., i_next, j_next] * v
    return np.asarray(low * (1 - u) + high * u)
