"""Distinct values and quantiles of small arrays.

``numpy.unique`` and ``numpy.quantile`` load ``numpy.ma`` on their first call, a tenth of the time of a short command;
the figures here are theirs to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["distinct", "quantiles"]


def distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Distinct values of ``values`` (n,), sorted upwards, and for each entry its index among them, (n,)."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    starts = np.ones(len(values), dtype=bool)
    starts[1:] = ranked[1:] != ranked[:-1]
    inverse = np.empty(len(values), dtype=np.intp)
    inverse[order] = np.cumsum(starts) - 1
    return ranked[starts], inverse


def quantiles(draws: NDArray[np.float64], fractions: Sequence[float]) -> NDArray[np.float64]:
    """Quantiles of ``draws`` (n, ...) along the first axis, linear between ranks: (fractions, ...)."""
    ranked = np.sort(draws, axis=0)
    found = []
    for fraction in fractions:
        place = fraction * (len(ranked) - 1)
        below = min(int(place), len(ranked) - 1)
        low, high = ranked[below], ranked[min(below + 1, len(ranked) - 1)]
        part = place - below
        # From the nearer end, so that a part of 1 gives the upper value exactly.
        found.append(low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part))
    return np.asarray(found)
