"""Intervals and joint noise of predicted accept lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.domain import Estimate, Provenance
from planner.errors import DomainError, InputError, Problem
from planner.estimate.order import distinct, quantiles

__all__ = ["Band", "as_estimates", "band", "correlated_noise", "read_budgets", "spread_indices"]

FloatArray = NDArray[np.float64]

_Z90 = 1.6448536269514722
"""95 % quantile of the unit normal."""
_NOISE_LOG_LENGTH = 2.0
"""Distance in ln(budget) over which the noise of two budgets decorrelates."""


@record(eq=False)
class Band:
    """Accept lengths with their 90 % interval, each (n,)."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def read_budgets(budgets: ArrayLike, *, largest: int) -> tuple[NDArray[np.int64], bool]:
    """Budgets as (n,) integers, and whether one number was given.

    Raises:
        InputError: something that is not a whole number from 0 up.
        DomainError: a budget above ``largest``.
    """
    given = np.asarray(budgets)
    flat = given.reshape(-1)
    if (
        flat.dtype.kind not in "iuf"
        or not np.all(np.isfinite(flat))
        or np.any(flat != np.floor(flat))
        or np.any(flat < 0)
    ):
        raise InputError([Problem("budgets must be whole numbers from 0 up", field="budget", value=budgets)])
    if np.any(flat > largest):
        raise DomainError(
            f"budget {int(flat.max())} is above {largest}, the largest for which there are data",
            "ask for a smaller budget",
        )
    return flat.astype(np.int64), given.ndim == 0


def band(mean: FloatArray, draws: FloatArray, noise_frac: float, cap: FloatArray, noisy: NDArray[np.bool_]) -> Band:
    """90 % interval: quantiles of the posterior draws and measurement noise, added in quadrature, within [1, cap].

    Args:
        mean: posterior mean, (n,).
        draws: posterior draws, (draws, n).
        noise_frac: relative standard deviation of a measurement.
        cap: largest possible accept length, (n,).
        noisy: False where the value is certain (budget 0), (n,).
    """
    low, high = quantiles(draws, (0.05, 0.95))
    noise = np.where(noisy, _Z90 * noise_frac * mean, 0.0)
    below = np.hypot(np.maximum(mean - low, 0.0), noise)
    above = np.hypot(np.maximum(high - mean, 0.0), noise)
    value = np.clip(mean, 1.0, cap)
    return Band(value, np.clip(value - below, 1.0, value), np.clip(value + above, value, cap))


def as_estimates(
    answer: Band, *, provenance: Sequence[Provenance], extrapolated: NDArray[np.bool_], note: str
) -> tuple[Estimate, ...]:
    """One :class:`Estimate` per entry of a band."""
    return tuple(
        Estimate(
            value=float(value), low=float(low), high=float(high), provenance=source, extrapolated=bool(far), note=note
        )
        for value, low, high, source, far in zip(
            answer.value, answer.low, answer.high, provenance, extrapolated, strict=True
        )
    )


def correlated_noise(
    budgets: NDArray[np.int64], n_samples: int, noise_frac: float, rng: np.random.Generator
) -> FloatArray:
    """Factors exp(noise), (n_samples, n_budgets): relative sd ``noise_frac``, correlation exp(-|ln b - ln b'| / 2)."""
    unique, inverse = distinct(np.maximum(budgets, 1))
    position = np.log(unique)
    correlation = np.exp(-np.abs(np.diff(position)) / _NOISE_LOG_LENGTH)
    unit = rng.standard_normal((n_samples, len(unique)))
    path = unit.copy()
    for i, rho in enumerate(correlation, start=1):
        path[:, i] = rho * path[:, i - 1] + np.sqrt(1 - rho**2) * unit[:, i]
    factor = np.exp(noise_frac * path)[:, inverse]
    factor[:, budgets == 0] = 1.0
    return factor


def spread_indices(rng: np.random.Generator, n_draws: int, n_samples: int) -> NDArray[np.int64]:
    """Indices of ``n_samples`` posterior draws, spread evenly over ``n_draws`` and in random order.

    Raises:
        InputError: ``n_samples`` below 1.
    """
    if n_samples < 1:
        raise InputError([Problem("n_samples must be at least 1", field="n_samples", value=n_samples)])
    spread = np.floor((np.arange(n_samples) + rng.random()) * n_draws / n_samples).astype(np.int64)
    return rng.permutation(np.minimum(spread, n_draws - 1))
