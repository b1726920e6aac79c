"""One line of the accuracy table: a model tried on observations that it was not fitted to."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.domain.fitting import AccuracyRow

__all__ = ["AccuracyRow", "accuracy_row", "weighted_quantile"]


def weighted_quantile(values: ArrayLike, weights: ArrayLike, quantile_frac: float) -> float:
    """Smallest value at which the cumulated weight reaches ``quantile_frac`` of the whole. Both inputs (n,)."""
    flat = np.asarray(values, dtype=float)
    order = np.argsort(flat, kind="stable")
    cumulated = np.cumsum(np.asarray(weights, dtype=float)[order])
    index = int(np.searchsorted(cumulated, quantile_frac * cumulated[-1] * (1 - 1e-12)))
    return float(flat[order][min(index, flat.size - 1)])


def accuracy_row(
    group: str,
    errors: ArrayLike,
    *,
    inside: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    goal_mape: float | None = None,
    goal_p90: float | None = None,
    goal_coverage: tuple[float, float] | None = None,
    note: str = "",
) -> AccuracyRow:
    """Summarise relative errors ``(predicted - measured) / measured``, shape (n,).

    Args:
        group: what was predicted from what.
        errors: relative errors as fractions, shape (n,).
        inside: whether the measured value lies in the 90 % interval, shape (n,).
        weights: weight of each prediction, shape (n,); equal by default. They need not sum to 1.
        goal_mape: largest MAPE that meets the goal.
        goal_p90: largest P90 that meets the goal.
        goal_coverage: lowest and highest coverage that meet the goal.
        note: data, weights, exclusions.
    """
    error: NDArray[np.float64] = np.asarray(errors, dtype=float)
    if error.size == 0:
        return AccuracyRow(group, 0, None, None, None, None, "", None, note or "no observation")
    weight = np.ones(error.shape) if weights is None else np.asarray(weights, dtype=float)
    mape = float(np.average(np.abs(error), weights=weight))
    p90 = weighted_quantile(np.abs(error), weight, 0.9)
    coverage = None if inside is None else float(np.average(np.asarray(inside, dtype=float), weights=weight))
    checks: list[tuple[str, bool]] = []
    if goal_mape is not None:
        checks.append((f"MAPE <= {100 * goal_mape:g} %", mape <= goal_mape))
    if goal_p90 is not None:
        checks.append((f"P90 <= {100 * goal_p90:g} %", p90 <= goal_p90))
    if goal_coverage is not None:
        low, high = goal_coverage
        met = coverage is not None and low <= coverage <= high
        checks.append((f"coverage {100 * low:g} to {100 * high:g} %", met))
    return AccuracyRow(
        group=group,
        n=int(error.size),
        mape=mape,
        p90=p90,
        bias=float(np.average(error, weights=weight)),
        coverage=coverage,
        goal=", ".join(text for text, _ in checks),
        met=all(met for _, met in checks) if checks else None,
        note=note,
    )
