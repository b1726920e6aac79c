"""The latent-ease family: expected accept length of the best tree as a function of budget, for any drafter quality.

A round has an ease z, drawn from a unit normal. At depth d the drafter's first choice is right with probability
``sigmoid(mu - delta * (d - 1) + sigma * z)``; the rest is shared by the other ranks as ``rank ** -s`` (ranks 2 to 256).
Ranks are then sorted, a tree takes the most probable paths of each round, and the accept length is averaged over z.
Averaging trees and not probabilities matters: a tree adapts to the round.

Every curve of the family is concave in the budget, starts at 1, gains at most 1 per node and ends below depth + 1.
Parameters between the nodes of the grid use the multilinear mixture of the corner curves: a mixture of such curves is
such a curve.
"""

from __future__ import annotations

import io
import itertools
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.estimate.acceptance.gains import beam_gains, best_first_gains, chain_gains, spine_gains

__all__ = [
    "AXES",
    "BUDGET_KNOTS",
    "MAX_BUDGET",
    "NODES",
    "CurveTable",
    "TreeShape",
    "compute_slopes",
    "curve_table",
    "decode_slopes",
    "encode_slopes",
    "table_name",
]

FloatArray = NDArray[np.float64]


class TreeShape(StrEnum):
    """How an engine picks the nodes of a tree."""

    BEST_FIRST = "best_first"
    """The most probable paths (DDTree)."""
    SPINE = "spine"
    """The whole first-choice chain, then the most probable other paths (ports with a chain seed)."""
    EAGLE = "eagle"
    """A beam of ``topk`` nodes per depth, then the most probable of all expanded nodes (EAGLE-2, EAGLE-3)."""


AXES: tuple[tuple[float, ...], ...] = (
    tuple(np.linspace(-3.0, 6.0, 17).tolist()),
    (-0.3, 0.1, 0.4, 0.8, 1.4),
    (0.0, 1.2, 2.2, 3.5),
    (0.6, 1.3, 2.2, 3.2, 4.5),
)
"""Grid of mu, delta, sigma and s: 17 x 5 x 4 x 5 = 1700 nodes."""

NODES: FloatArray = np.array(list(itertools.product(*AXES)))
"""(1700, 4), last axis fastest."""
NODES.setflags(write=False)

MAX_BUDGET = 1024
"""Largest budget of the published trees (arXiv:2604.12989, Table 1)."""

BUDGET_KNOTS: NDArray[np.int64] = np.array(
    [*range(1, 25), 28, 32, 36, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024]
)
"""Budgets at which curves are tabulated; between them a curve is linear, which keeps it concave."""
BUDGET_KNOTS.setflags(write=False)

_N_EASE = 9
_NORM_RANKS = 256
_MAX_RANKS = 64
_LOG_RANGE = 18.0
_LOG_STEPS = 4095
"""Slopes are stored as steps of -ln(slope) in [0, 18]: relative rounding 0.22 %, order preserved; a curve moves by
0.03 %."""


def _ease_nodes() -> FloatArray:
    """Nine equally likely values of z, scaled to unit variance."""
    normal = NormalDist()
    z = np.array([normal.inv_cdf((i + 0.5) / _N_EASE) for i in range(_N_EASE)])
    return np.asarray(z / z.std())


def rank_probabilities(theta: FloatArray, depth: int, n_ranks: int) -> FloatArray:
    """Rank probabilities of the family, sorted downwards: (parameters, 9 eases, depth, n_ranks)."""
    mu, delta, sigma, _s = (column[:, None, None] for column in theta.T)
    logit = mu - delta * np.arange(depth) + sigma * _ease_nodes()[:, None]
    first = 1 / (1 + np.exp(-logit))
    # The grid has few values of s, and the powers of one serve all its nodes.
    exponents = np.array(sorted(set(theta[:, 3].tolist())))
    weight = np.arange(2, _NORM_RANKS + 1) ** -exponents[:, None]
    weight /= weight.sum(axis=1, keepdims=True)
    weight = weight[np.searchsorted(exponents, theta[:, 3]), :n_ranks]
    others = (1 - first)[..., None] * weight[:, None, None, :]
    if n_ranks == 1:
        return np.asarray(np.maximum(first, others[..., 0])[..., None])
    ranks = np.concatenate([first[..., None], others], axis=-1)
    return np.asarray(-np.sort(-ranks, axis=-1)[..., :n_ranks])


def compute_slopes(
    depth: int, *, topk: int | None, shape: TreeShape, n_nodes: int, chunk: int | None = None
) -> FloatArray:
    """Mean gain per node between consecutive knots up to ``n_nodes``, for every node of the grid: (1700, knots).

    ``chunk`` nodes of the grid are computed at a time; without it 50, or all of them for a chain, which is small.
    """
    knots = BUDGET_KNOTS[n_nodes >= BUDGET_KNOTS]
    n_ranks = min(topk or _MAX_RANKS, _MAX_RANKS, n_nodes)
    chunk = chunk or (len(NODES) if n_ranks == 1 else 50)
    width = np.diff(knots, prepend=0)
    out = np.empty((len(NODES), len(knots)))
    for start in range(0, len(NODES), chunk):
        theta = NODES[start : start + chunk]
        probs = rank_probabilities(theta, depth, n_ranks)
        rows = probs.reshape(-1, depth, n_ranks)
        if shape is TreeShape.SPINE:
            gains = spine_gains(rows, n_nodes)
        elif shape is TreeShape.EAGLE:
            gains = beam_gains(rows, n_nodes, width=n_ranks)
        elif n_ranks == 1:
            gains = chain_gains(rows)[:, :n_nodes]
        else:
            gains = best_first_gains(rows, n_nodes)
        mean = gains.reshape(len(theta), _N_EASE, -1).mean(axis=1, dtype=np.float64)
        total = np.cumsum(mean, axis=1)[:, np.minimum(knots, mean.shape[1]) - 1]
        out[start : start + chunk] = np.diff(total, axis=1, prepend=0.0) / width
    return out


def encode_slopes(slopes: FloatArray) -> NDArray[np.int16]:
    """Slopes (nodes, knots) in [0, 1] as differences along the knots of their logarithmic code: (knots, nodes)."""
    with np.errstate(divide="ignore"):
        scaled = np.minimum(-np.log(np.clip(slopes, 0.0, 1.0)) / _LOG_RANGE, 1.0)
    code = np.round(scaled * _LOG_STEPS).astype(np.int16)
    return np.diff(code.T, axis=0, prepend=np.int16(0)).astype(np.int16)


def decode_slopes(stored: NDArray[np.int16]) -> FloatArray:
    """Inverse of :func:`encode_slopes` up to rounding: (nodes, knots)."""
    slope_of = np.exp(-np.arange(_LOG_STEPS + 1) / _LOG_STEPS * _LOG_RANGE)
    slope_of[-1] = 0.0
    return np.asarray(slope_of[np.cumsum(stored, axis=0, dtype=np.int16).T])


def table_name(depth: int, *, topk: int | None, shape: TreeShape) -> str:
    """Name of a table in the packaged archive."""
    return f"{shape.value}_d{depth}_k{topk or 0}"


@record(eq=False)
class CurveTable:
    """Curves of all nodes of the grid for one depth, topk and tree shape."""

    depth: int
    knots: NDArray[np.int64]
    """Budgets, starting at 0."""
    accept_len: FloatArray
    """(1700, knots): accept length of the grid's curves at the knots, bonus token included. The nodes of one knot lie
    side by side in memory."""

    def at(self, budgets: ArrayLike) -> FloatArray:
        """Accept length of every node at budgets (n,): (1700, n), linear between knots."""
        budget = np.asarray(budgets, dtype=float)
        right = np.clip(np.searchsorted(self.knots, budget), 1, len(self.knots) - 1)
        left = right - 1
        part = (budget - self.knots[left]) / (self.knots[right] - self.knots[left])
        by_knot = self.accept_len.T
        return np.asarray(by_knot[left] * (1 - part)[:, None] + by_knot[right] * part[:, None]).T


def _as_table(depth: int, slopes: FloatArray) -> CurveTable:
    knots = np.concatenate([[0], BUDGET_KNOTS[: slopes.shape[1]]])
    curve = np.empty((len(knots), len(slopes)))
    curve[0] = 1.0
    np.cumsum(slopes.T * np.diff(knots)[:, None], axis=0, out=curve[1:])
    curve[1:] += 1
    np.minimum(curve, 1.0 + depth, out=curve)
    curve.setflags(write=False)
    return CurveTable(depth, knots, curve.T)


@lru_cache(maxsize=1)
def _packaged_names() -> frozenset[str]:
    from planner.data.files import list_names

    return frozenset(name.removesuffix(".npz") for name in list_names("acceptance", ".npz"))


@lru_cache(maxsize=96)
def _table(depth: int, topk: int | None, shape: TreeShape, n_nodes: int) -> CurveTable:
    name = table_name(depth, topk=topk, shape=shape)
    if name in _packaged_names():
        from planner.data.files import read_bytes

        n_knots = int(np.count_nonzero(n_nodes >= BUDGET_KNOTS))
        with np.load(io.BytesIO(read_bytes(f"acceptance/{name}.npz")), allow_pickle=False) as archive:
            return _as_table(depth, decode_slopes(archive["slopes"][:n_knots]))
    return _as_table(depth, compute_slopes(depth, topk=topk, shape=shape, n_nodes=n_nodes))


def curve_table(depth: int, *, topk: int | None, shape: TreeShape, max_budget: int) -> CurveTable:
    """Table that reaches ``max_budget``: packaged where it is shipped, otherwise computed once and kept in memory."""
    if shape is not TreeShape.EAGLE and topk is not None and topk >= _MAX_RANKS:
        topk = None
    n_nodes = next(size for size in (64, 256, MAX_BUDGET) if size >= max_budget)
    return _table(depth, topk, shape, n_nodes)
