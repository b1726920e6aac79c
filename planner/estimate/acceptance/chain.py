"""Chains and MTP heads: accept length against the number of drafted tokens, as a logit-decay curve.

The i-th drafted token is accepted, given that those before it were, with probability ``sigmoid(a - b * (i - 1))``;
the accept length of n drafted tokens is 1 plus the sum of the running products. Two parameters: b near 0 is a
geometric chain, a large b is a chain that saturates (MTP heads trained for one token and reused).

Prior: a flat, b as a Cauchy curve around 0.3 with half width 0.35, cut to [-0.3, 2.5], so that saturating chains are
    not ruled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.domain import Domain, Estimate, Provenance
from planner.errors import InputError, Problem
from planner.estimate.acceptance.conditions import Shift, shift_draws, traffic_shift
from planner.estimate.acceptance.interval import (
    Band,
    as_estimates,
    band,
    correlated_noise,
    read_budgets,
    spread_indices,
)
from planner.estimate.acceptance.points import CurvePoint
from planner.estimate.acceptance.posterior import BASE_SD_FRAC, N_DRAWS, noise_sd_frac, weights_of

__all__ = ["ChainAcceptance", "fit_chain"]

FloatArray = NDArray[np.float64]

_N_PARAMETERS = 2
_REFUSED_RMS_FRAC = 0.10
"""Points that the best chain misses by more than 10 % (root mean square) are not one chain."""
_MAX_DRAFTED = 1024


@lru_cache(maxsize=16)
def _family(depth: int) -> tuple[FloatArray, FloatArray]:
    """Curves (grid, depth + 1) from no drafted token up, and log prior (grid,)."""
    a, b = (axis.ravel() for axis in np.meshgrid(np.linspace(-3, 6, 181), np.linspace(-0.3, 2.5, 113), indexing="ij"))
    logit = np.clip(a[:, None] - b[:, None] * np.arange(depth), -30, 30)
    survive = np.cumprod(1 / (1 + np.exp(-logit)), axis=1)
    curves = 1 + np.pad(np.cumsum(survive, axis=1), ((0, 0), (1, 0)))
    curves.setflags(write=False)
    return curves, -np.log1p(((b - 0.3) / 0.35) ** 2)


@dataclass(frozen=True, slots=True, eq=False)
class ChainAcceptance:
    """Accept length against drafted tokens for a chain, conditioned on measured points."""

    block_size: int
    points: tuple[CurvePoint, ...]
    mean_curve: FloatArray
    """(block_size,): posterior mean at 0 to block_size - 1 drafted tokens."""
    draws: FloatArray
    """(512, block_size): posterior draws of the curve."""
    noise_frac: float
    notes: tuple[str, ...] = ()
    shift: Shift | None = None

    @property
    def max_accept_len(self) -> int:
        """All drafted tokens and the bonus token."""
        return self.block_size

    def _curves(self, n_drafted: NDArray[np.int64]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (n,), draws (512, n) and cap (n,)."""
        length = np.minimum(n_drafted, self.block_size - 1)
        mean, draws, cap = self.mean_curve[length], self.draws[:, length], 1.0 + length
        if self.shift is not None:
            mean = np.minimum(1 + (mean - 1) * self.shift.value, cap)
            draws = np.minimum(1 + (draws - 1) * shift_draws(self.shift, len(draws))[:, None], cap)
        return mean, draws, cap

    def predict_band(self, n_drafted: ArrayLike) -> Band:
        """Value, low and high at drafted tokens (n,) as arrays."""
        wanted, _ = read_budgets(n_drafted, largest=_MAX_DRAFTED)
        mean, draws, cap = self._curves(wanted)
        return band(mean, draws, self.noise_frac, cap, wanted > 0)

    @overload
    def predict(self, budget: int) -> Estimate: ...
    @overload
    def predict(self, budget: Sequence[int] | NDArray[np.integer]) -> tuple[Estimate, ...]: ...
    def predict(self, budget: int | Sequence[int] | NDArray[np.integer]) -> Estimate | tuple[Estimate, ...]:
        """Accept length of ``budget`` drafted tokens. A chain longer than block_size - 1 stays at that value.

        Raises:
            InputError: not a whole number from 0 up.
        """
        wanted, scalar = read_budgets(budget, largest=_MAX_DRAFTED)
        measured = {point.budget for point in self.points if self.shift is None}
        lowest, highest = (f(point.budget for point in self.points) for f in (min, max))
        far = (wanted > 4 * highest) | ((wanted > 0) & (wanted * 4 < lowest)) | (wanted > self.block_size - 1)
        note = "; ".join(
            [f"chain fitted on {len(self.points)} measured point{'s' if len(self.points) > 1 else ''}", *self.notes]
            + ([self.shift.note] if self.shift is not None else [])
        )
        estimates = as_estimates(
            self.predict_band(wanted),
            provenance=[Provenance.MEASURED if int(n) in measured else Provenance.FITTED for n in wanted],
            extrapolated=far | (self.shift is not None and self.shift.extrapolated),
            note=note,
        )
        return estimates[0] if scalar else estimates

    predict_chain = predict

    def sample(self, budgets: ArrayLike, n_samples: int = 256, seed: int = 0) -> FloatArray:
        """Joint draws, shape (n_samples, n_budgets); equal inputs give equal draws. Noise is shared between near
        lengths."""
        wanted, _ = read_budgets(budgets, largest=_MAX_DRAFTED)
        rng = np.random.default_rng(seed)
        pick = spread_indices(rng, N_DRAWS, n_samples)
        _, draws, cap = self._curves(wanted)
        factor = correlated_noise(wanted, n_samples, self.noise_frac, rng)
        return np.clip(draws[pick] * factor, 1.0, cap)

    sample_chain = sample

    def at(
        self,
        *,
        domain: Domain | str | None = None,
        temperature: float | None = None,
        context_tok: float | None = None,
        train_context_tok: int | None = None,
    ) -> ChainAcceptance:
        """The fit carried over to other traffic; see :meth:`TreeAcceptance.at`."""
        shift = traffic_shift(
            self.points,
            domain=domain,
            temperature=temperature,
            context_tok=context_tok,
            train_context_tok=train_context_tok,
        )
        return self if shift is None else replace(self, shift=shift)


def fit_chain(points: tuple[CurvePoint, ...], *, block_size: int) -> ChainAcceptance:
    """Condition the logit-decay family on chain points.

    Raises:
        InputError: a tree point among them, or points that no curve comes near.
    """
    trees = [
        Problem("a tree point in a chain fit", field=f"points[{i}].kind", hint="fit kind='tree' and use predict_chain")
        for i, point in enumerate(points)
        if point.kind == "tree"
    ]
    if trees:
        raise InputError(trees)
    curves, log_prior = _family(block_size - 1)
    length = np.array([min(point.budget, block_size - 1) for point in points])
    measured = np.array([point.accept_len for point in points])
    sd_frac = noise_sd_frac(np.array([np.nan if p.rounds is None else p.rounds for p in points], dtype=float))
    likelihood, misfit = weights_of(np.log(measured), np.log(curves[:, length]), sd_frac)
    rms = misfit * float(np.sqrt(np.mean(sd_frac**2)))
    if rms > _REFUSED_RMS_FRAC:
        shown = ", ".join(f"{p.accept_len:g} at {p.budget}" for p in points)
        raise InputError(
            f"the points contradict each other ({shown}): the nearest chain misses them by {100 * rms:.0f} %",
            "measure all lengths on one prompt set, and count the bonus token the same way in each",
        )
    weight = likelihood * np.exp(log_prior)
    weight /= weight.sum()
    picks = np.searchsorted(np.cumsum(weight), (np.arange(N_DRAWS) + 0.5) / N_DRAWS)
    notes = []
    if len(points) < _N_PARAMETERS:
        notes.append(
            "1 point for 2 parameters: how fast acceptance falls with depth is the prior's, saturation is not seen"
        )
    noise = float(np.sqrt(np.mean(sd_frac**2)))
    if misfit > 1:
        noise *= misfit
        notes.append(f"the points scatter by {100 * noise:.1f} % about the curve, more than assumed")
    return ChainAcceptance(
        block_size=block_size,
        points=points,
        mean_curve=weight @ curves,
        draws=curves[np.minimum(picks, len(curves) - 1)],
        noise_frac=max(noise, BASE_SD_FRAC),
        notes=tuple(notes),
    )
