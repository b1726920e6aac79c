"""Posterior over the latent-ease family: a fixed cloud of parameters, weighted by how well each explains the points.

The cloud is a low-discrepancy sequence pushed through the prior, so equal inputs give equal answers on every machine.

Prior. mu is flat. The others are normal: delta 0.4 +- 0.31, sigma 1.7 +- 1.0, s (1.3 + 0.45 mu) +- 0.87. The means are
those of fits to public curves (docs/acceptance.md), the widths 1.25 times the spread seen there. That alternates fall
off faster where the first choice is surer (s grows with mu) is the part that matters. It was seen on block-16 drafters
and holds on EAGLE-3 trees of depth 7, which had no part in these means.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.estimate.acceptance.family import AXES, CurveTable

__all__ = ["BASE_SD_FRAC", "N_DRAWS", "UNKNOWN_ROUNDS", "Posterior", "noise_sd_frac", "tree_posterior", "weights_of"]

FloatArray = NDArray[np.float64]

BASE_SD_FRAC = 0.015
"""Relative misfit of the family and run-to-run spread that no number of rounds removes."""

_ROUND_VAR_FRAC2 = 0.06
"""Relative variance of one round that differs between two runs on the same prompts. Per-round SD / mean is 0.34 to
0.50 on public traces (variance 0.12 to 0.25); runs on the same prompts share most of it."""

UNKNOWN_ROUNDS = 340
"""Rounds assumed where a point does not say: the noise is then 2 %."""

N_DRAWS = 512
"""Posterior draws kept for quantiles and joint sampling."""

_N_CLOUD = 16384


def noise_sd_frac(rounds: NDArray[np.float64]) -> FloatArray:
    """Relative standard deviation of a measured accept length, same shape as ``rounds`` (NaN: unknown)."""
    known = np.where(np.isnan(rounds), UNKNOWN_ROUNDS, rounds)
    return np.sqrt(BASE_SD_FRAC**2 + _ROUND_VAR_FRAC2 / known)


@lru_cache(maxsize=1)
def _normal_table() -> tuple[FloatArray, FloatArray]:
    normal = NormalDist()
    x = np.linspace(-5, 5, 401)
    return x, np.array([normal.cdf(value) for value in x])


def _truncated_normal(u: FloatArray, mean: FloatArray | float, sd_value: float, low: float, high: float) -> FloatArray:
    """Quantile ``u`` of a normal truncated to [low, high]."""
    x, cdf = _normal_table()
    a = np.interp((low - mean) / sd_value, x, cdf)
    b = np.interp((high - mean) / sd_value, x, cdf)
    return np.clip(mean + sd_value * np.interp(a + (b - a) * u, cdf, x), low, high)


_GRID = tuple(len(axis) for axis in AXES)
_CORNERS = np.array([np.ravel_multi_index(corner, _GRID) for corner in np.ndindex(2, 2, 2, 2)])
"""Offsets of the 16 nodes around a point of the cloud from its lowest one."""


@record(eq=False)
class _Cloud:
    """Points of the prior as mixtures of the 16 grid nodes around each."""

    lowest: NDArray[np.intp]
    """Index of the lowest of the 16 nodes, (16384,)."""
    part: FloatArray
    """Place between the nodes along each axis, 0 to 1, (4, 16384)."""

    def curves(self, column: FloatArray) -> FloatArray:
        """Value of every point, (16384,), given those of the nodes (1700,): multilinear interpolation."""
        values = column[self.lowest + _CORNERS[:, None]].reshape(2, 2, 2, 2, -1)
        for part in self.part:
            values = values[0] + (values[1] - values[0]) * part
        return np.asarray(values)

    def mixtures(self, points: NDArray[np.intp]) -> tuple[NDArray[np.intp], FloatArray]:
        """Nodes of some points and their weights, (points, 16) each."""
        weight = np.ones((len(points), 1))
        for part in self.part[:, points, None]:
            weight = np.stack([weight * (1 - part), weight * part], axis=2).reshape(len(points), -1)
        return self.lowest[points, None] + _CORNERS, weight


@lru_cache(maxsize=1)
def _cloud() -> _Cloud:
    """The prior cloud."""
    # Kronecker sequence with the powers of the generalised golden ratio of four dimensions (root of x^5 = x + 1).
    ratio = 1.1673039782614187
    steps = ratio ** -np.arange(1, 5)
    u = (0.5 + np.outer(np.arange(1, _N_CLOUD + 1), steps)) % 1.0
    axes = [np.array(axis) for axis in AXES]
    mu = axes[0][0] + u[:, 0] * (axes[0][-1] - axes[0][0])
    theta = np.stack(
        [
            mu,
            _truncated_normal(u[:, 1], 0.4, 0.31, axes[1][0], axes[1][-1]),
            _truncated_normal(u[:, 2], 1.7, 1.0, axes[2][0], axes[2][-1]),
            _truncated_normal(u[:, 3], 1.3 + 0.45 * mu, 0.87, axes[3][0], axes[3][-1]),
        ]
    )
    lowest = np.zeros(_N_CLOUD, dtype=np.intp)
    part = np.empty((len(axes), _N_CLOUD))
    for i, axis in enumerate(axes):
        left = np.clip(np.searchsorted(axis, theta[i]) - 1, 0, len(axis) - 2)
        part[i] = (theta[i] - axis[left]) / (axis[left + 1] - axis[left])
        lowest = lowest * len(axis) + left
    return _Cloud(lowest, part)


@record(eq=False)
class Posterior:
    """Weights on the nodes of the grid, and equally likely draws, each a mixture of nodes."""

    node_weight: FloatArray
    """(1700,), sums to 1: the posterior mean of any linear functional of a curve."""
    draw_nodes: NDArray[np.intp]
    """Nodes that each draw mixes, (512, 16)."""
    draw_weights: FloatArray
    """Their weights, (512, 16)."""
    misfit: float
    """Root mean square of the standardised residuals of the best curve; above 1 the points scatter more than
    assumed."""

    def mean(self, table: CurveTable, budgets: NDArray[np.int64]) -> FloatArray:
        """Posterior mean of the accept length at budgets (n,)."""
        return np.asarray(np.einsum("i,ij->j", self.node_weight, table.at(budgets)))

    def curves(self, table: CurveTable, budgets: NDArray[np.int64]) -> FloatArray:
        """Accept length of every draw at budgets (n,): (512, n)."""
        return np.asarray(np.einsum("ij,ijk->ik", self.draw_weights, table.at(budgets)[self.draw_nodes]))


def weights_of(log_measured: FloatArray, log_curves: FloatArray, sd_frac: FloatArray) -> tuple[FloatArray, float]:
    """Likelihood weights of curves given points, and the misfit of the best curve.

    Where even the best curve leaves residuals larger than the noise, the noise is scaled up to match them.

    Args:
        log_measured: (points,).
        log_curves: (curves, points).
        sd_frac: relative noise of each point, (points,).
    """
    chi2 = (((log_measured - log_curves) / sd_frac) ** 2).sum(axis=1)
    misfit = float(np.sqrt(chi2.min() / len(log_measured)))
    weight = np.exp(-0.5 * (chi2 - chi2.min()) / max(1.0, misfit) ** 2)
    return weight / weight.sum(), misfit


def tree_posterior(columns: list[FloatArray], measured: FloatArray, sd_frac: FloatArray) -> Posterior:
    """Condition the cloud on points.

    Args:
        columns: for each point the accept length of the 1700 grid nodes at its budget, topk and shape.
        measured: accept length of each point, (points,).
        sd_frac: relative noise of each point, (points,).
    """
    cloud = _cloud()
    curves = np.stack([cloud.curves(column) for column in columns], axis=1)
    weight, misfit = weights_of(np.log(measured), np.log(curves), sd_frac)
    support = np.flatnonzero(weight > 1e-9 * weight.max())
    index, corner = cloud.mixtures(support)
    node_weight = np.bincount(index.ravel(), (weight[support, None] * corner).ravel(), minlength=columns[0].size)
    cumulated = np.cumsum(weight[support])
    picks = np.searchsorted(cumulated, (np.arange(N_DRAWS) + 0.5) / N_DRAWS * cumulated[-1])
    chosen = np.minimum(picks, len(support) - 1)
    return Posterior(node_weight / node_weight.sum(), index[chosen], corner[chosen], misfit)
