"""Interval of a median, and what decode lines say at full batch. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

from planner.diagnose import DecodePoint

__all__ = ["FullBatch", "MedianInterval", "full_batch", "median_interval"]

MIN_COVERAGE = 0.9
FULL_BATCH_FRAC = 0.9
"""A decode line counts as full batch when at least this share of the clients runs."""
MIN_LINES = 3


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """Median of repeats with an interval that holds the true median with probability ``coverage``."""

    value: float
    low: float
    high: float
    coverage: float
    n: int

    @property
    def half_width_frac(self) -> float:
        """Half the interval over the median."""
        return (self.high - self.low) / 2 / self.value if self.value else float("inf")

    def tight(self, frac: float) -> bool:
        """Whether the interval is worth its name (enough repeats) and narrow enough."""
        return self.coverage >= MIN_COVERAGE and self.half_width_frac <= frac


def median_interval(values: Sequence[float]) -> MedianInterval:
    """Order-statistic interval: the narrowest symmetric pair of order statistics that covers the median with at least
    MIN_COVERAGE (sign test; no assumption on the distribution). With fewer than five values no pair does, and the
    interval is their whole range with the coverage it has.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    n = len(ordered)
    best = 0
    for cut in range((n - 1) // 2 + 1):
        if _coverage(n, cut) >= MIN_COVERAGE:
            best = cut
    return MedianInterval(
        value=median(ordered), low=ordered[best], high=ordered[n - 1 - best], coverage=_coverage(n, best), n=n
    )


def _coverage(n: int, cut: int) -> float:
    """Probability that the median lies between the order statistics cut + 1 and n - cut."""
    return 1.0 - 2.0 * sum(comb(n, k) for k in range(cut + 1)) / 2.0**n if n > 1 else 0.0


@dataclass(frozen=True, slots=True)
class FullBatch:
    """Decode lines at full batch. None: the lines do not say."""

    tok_per_s: float | None
    accept_len: float | None
    step_s: float | None
    n_lines: int


def full_batch(points: Sequence[DecodePoint], concurrency: int) -> FullBatch:
    """Medians over the lines that run at least FULL_BATCH_FRAC of the clients.

    The first line of a window is left out: its throughput covers time before the window. The tail of a run, where
    fewer clients are left, does not count (accept length read there misled on record). A line's step time is the time
    between two commits of one request: running requests x accept length / tokens per second.
    """
    full = [point for point in points[1:] if point.running_req >= FULL_BATCH_FRAC * concurrency]
    full = [point for point in full if point.gen_tok_per_s]
    if len(full) < MIN_LINES:
        return FullBatch(None, None, None, len(full))
    accepts = [point.accept_len for point in full if point.accept_len is not None]
    steps = [point.running_req * (point.accept_len or 1.0) / (point.gen_tok_per_s or 1.0) for point in full]
    return FullBatch(
        tok_per_s=median(point.gen_tok_per_s or 0.0 for point in full),
        accept_len=median(accepts) if accepts else None,
        step_s=median(steps),
        n_lines=len(full),
    )
