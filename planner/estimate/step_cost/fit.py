"""Fit of the step-cost parameters: a linear model with a prior and bounds, one posterior for all kinds of steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.estimate.step_cost.features import Features
from planner.estimate.step_cost.kernels import FloatArray
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, PARAMETERS, ParameterPosterior

__all__ = ["fit_posterior"]

_N_SWEEPS = 120
_N_CHAINS = 64
_NOISE_DEGREES = 12.0
_NVLS = PARAMETER_NAMES.index("nvls_gain_frac")


def fit_posterior(
    features: Sequence[Features],
    step_s: Sequence[FloatArray],
    start: ParameterPosterior,
    *,
    noise_frac: float = 0.05,
    free: NDArray[np.bool_] | None = None,
) -> ParameterPosterior:
    """Posterior of the parameters given measured steps.

    The likelihood is normal with a relative error whose size is estimated with ``noise_frac`` as its prior guess (worth
    twelve observations); the prior is ``start``, widened where these runs lie far outside what it allows. The mean and
    covariance are those of the normal posterior cut at the bounds, from Gibbs sampling with a fixed seed (cutting
    matters: one point cannot tell a term for each request from a term for each token, and neither can be below zero).

    Args:
        features: design matrices.
        step_s: measured seconds of each, (n_i,).
        start: prior.
        noise_frac: expected relative error of a measurement about the model.
        free: parameters (p,) that may move; all by default.
    """
    from scipy.optimize import lsq_linear

    low = np.array([parameter.low for parameter in PARAMETERS])
    high = np.array([parameter.high for parameter in PARAMETERS])
    movable = np.ones(low.size, dtype=bool) if free is None else free.copy()
    movable[_NVLS] = False
    y = np.concatenate([np.asarray(values, float) for values in step_s])
    theta = np.clip(start.mean, low, high)
    prior = _widened(features, y, start, movable, noise_frac)
    prior_precision: FloatArray = np.asarray(np.linalg.inv(prior), dtype=np.float64)
    root = np.linalg.cholesky(prior_precision).T
    noise = noise_frac
    precision, moment = prior_precision, prior_precision @ start.mean[movable]
    for _ in range(4):
        x = np.concatenate([_scaled(f, theta) for f in features])
        fixed = x[:, ~movable] @ theta[~movable]
        weight = 1.0 / (noise * y)
        a = np.vstack([x[:, movable] * weight[:, None], root])
        b = np.concatenate([(y - fixed) * weight, root @ start.mean[movable]])
        solved = lsq_linear(a, b, bounds=(low[movable], high[movable]), method="bvls")
        theta = theta.copy()
        theta[movable] = solved.x
        residual = (x @ theta - y) / y
        noise = float(np.sqrt((_NOISE_DEGREES * noise_frac**2 + (residual**2).sum()) / (_NOISE_DEGREES + y.size)))
        precision, moment = a.T @ a, a.T @ b
    mean, covariance = _truncated_moments(precision, moment, solved.x, low[movable], high[movable])
    full_mean, full_covariance = theta.copy(), np.zeros((low.size, low.size))
    full_mean[movable] = mean
    full_covariance[np.ix_(movable, movable)] = covariance
    fixed_sd = np.where(movable, 0.0, np.sqrt(np.diag(start.covariance)))
    full_covariance += np.diag(fixed_sd**2)
    return ParameterPosterior(full_mean, full_covariance, noise)


def _widened(
    features: Sequence[Features],
    y: FloatArray,
    start: ParameterPosterior,
    movable: NDArray[np.bool_],
    noise_frac: float,
) -> FloatArray:
    """Covariance of the movable parameters before the fit; widened where the prior is wrong about these runs.

    The prior says how the measurements should scatter about its own prediction. Where they lie further out than in one
    of a hundred cases, it is of another kind of deployment: its covariance is scaled by the mean square of the scatter,
    so that the runs speak. Without this a fit of few runs would call them noise.
    """
    from scipy.special import gammaincinv

    covariance = start.covariance[np.ix_(movable, movable)]
    x = np.concatenate([_scaled(f, start.mean) for f in features])
    z = x[:, movable] / (noise_frac * y)[:, None]
    off = (y - x @ start.mean) / (noise_frac * y)
    # off' (1 + z C z')^-1 off by Woodbury's identity: as many unknowns as parameters, not as measurements.
    inner = z.T @ off
    square = float(off @ off - inner @ np.linalg.solve(np.linalg.inv(covariance) + z.T @ z, inner)) / y.size
    allowed = 2.0 * float(gammaincinv(y.size / 2.0, 0.99)) / y.size
    return np.asarray(covariance * (square if square > allowed else 1.0), dtype=np.float64)


def _scaled(features: Features, theta: FloatArray) -> FloatArray:
    """Columns at ``theta`` with the gain of NVLS applied (a column of the step as measured)."""
    return np.asarray(features.effective(theta) / (1.0 + theta[_NVLS] * features.nvls)[:, None])


def _truncated_moments(
    precision: FloatArray, moment: FloatArray, start: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of a normal (precision, precision @ mean) cut at the bounds, by Gibbs sampling."""
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(20240531)
    scale = 1.0 / np.sqrt(np.diag(precision))
    q = precision * scale[:, None] * scale[None, :]
    h, lower, upper = moment * scale, low / scale, high / scale
    state = np.repeat((start / scale)[None, :], _N_CHAINS, axis=0)
    kept = []
    for sweep in range(_N_SWEEPS):
        uniform = rng.random((q.shape[0], _N_CHAINS))
        for i in range(q.shape[0]):
            centre = h[i] - state @ q[:, i] + state[:, i] * q[i, i]
            from_cdf, to_cdf = ndtr(lower[i] - centre), ndtr(upper[i] - centre)
            # Far in a tail both are 0 or 1: the nearer bound is then the answer.
            drawn = centre + ndtri(np.clip(from_cdf + uniform[i] * (to_cdf - from_cdf), 1e-12, 1 - 1e-12))
            state[:, i] = np.clip(drawn, lower[i], upper[i])
        if sweep >= _N_SWEEPS // 3:
            kept.append(state * scale)
    draws = np.concatenate(kept)
    return draws.mean(axis=0), np.cov(draws.T).reshape(q.shape)
