"""A fitted tree curve: predictions over budgets, topk and chains, joint samples, other traffic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.domain import Domain, Estimate, Provenance
from planner.errors import InputError, Problem
from planner.estimate.acceptance.conditions import Shift, shift_draws, traffic_shift
from planner.estimate.acceptance.family import MAX_BUDGET, CurveTable, TreeShape, curve_table
from planner.estimate.acceptance.interval import (
    Band,
    as_estimates,
    band,
    correlated_noise,
    read_budgets,
    spread_indices,
)
from planner.estimate.acceptance.points import CurvePoint
from planner.estimate.acceptance.posterior import N_DRAWS, Posterior

__all__ = ["TreeAcceptance", "check_block_size"]

FloatArray = NDArray[np.float64]

TopK = int | Sequence[int | None] | NDArray[np.integer] | None
"""Alternates per depth: one for all budgets, one for each, or the default of the fit."""

_NEAR_FACTOR = 4.0
"""The figures of docs/acceptance.md hold for budgets within this factor of a measured one."""


@record(eq=False)
class TreeAcceptance:
    """Accept length against budget for a tree drafter, conditioned on measured points."""

    block_size: int
    topk: int | None
    """Alternates per depth assumed where a question does not say; None: no restriction."""
    shape: TreeShape
    points: tuple[CurvePoint, ...]
    posterior: Posterior
    noise_frac: float
    """Relative noise of a measurement like the ones fitted (same number of rounds)."""
    notes: tuple[str, ...] = ()
    shift: Shift | None = None
    """Change of traffic applied to the fit (:meth:`at`)."""
    chain_to_tree: Shift | None = None
    """Correction of trees predicted from chain points alone."""

    @property
    def max_accept_len(self) -> int:
        """Longest path and the bonus token."""
        return self.block_size

    def _table(self, topk: int | None, max_budget: int, shape: TreeShape | None = None) -> CurveTable:
        return curve_table(self.block_size - 1, topk=topk, shape=shape or self.shape, max_budget=max_budget)

    def _shifts(self, chain: bool) -> list[tuple[Shift, int]]:
        """Factors that apply, each with its stride (:func:`shift_draws`)."""
        both = ((self.shift, 1), (None if chain else self.chain_to_tree, 301))
        return [(shift, stride) for shift, stride in both if shift is not None]

    def _mean(self, table: CurveTable, budgets: NDArray[np.int64], *, chain: bool = False) -> FloatArray:
        """Posterior mean of the true accept length, (n,)."""
        mean = self.posterior.mean(table, budgets)
        for shift, _ in self._shifts(chain):
            mean = np.minimum(1 + (mean - 1) * shift.value, 1.0 + np.minimum(budgets, self.block_size - 1))
        return mean

    def _draws(self, table: CurveTable, budgets: NDArray[np.int64], *, chain: bool = False) -> FloatArray:
        """Posterior draws of the true accept length, (512, n)."""
        draws = self.posterior.curves(table, budgets)
        cap = 1.0 + np.minimum(budgets, self.block_size - 1)
        for shift, stride in self._shifts(chain):
            draws = np.minimum(1 + (draws - 1) * shift_draws(shift, len(draws), stride=stride)[:, None], cap)
        return draws

    def _topk_of(self, budgets: NDArray[np.int64], topk: TopK) -> list[int | None]:
        """The topk of each budget."""
        given = list(topk) if isinstance(topk, (Sequence, np.ndarray)) else [topk] * len(budgets)
        if len(given) != len(budgets):
            text = f"one topk, or one for each of {len(budgets)} budgets"
            raise InputError([Problem(text, field="topk", value=len(given))])
        chosen = [self.topk if value is None else value for value in given]
        for value in chosen:
            whole = value is None or (isinstance(value, Integral) and not isinstance(value, bool))
            if not whole or (value is not None and value < 1):
                raise InputError([Problem("must be a whole number of at least 1", field="topk", value=value)])
        return [None if value is None else int(value) for value in chosen]

    def _by_topk(self, budgets: NDArray[np.int64], topk: TopK) -> Iterator[tuple[NDArray[np.intp], CurveTable]]:
        """Indices of the budgets that share a topk, with the table of it."""
        chosen = self._topk_of(budgets, topk)
        for value in set(chosen):
            columns = np.array([i for i, other in enumerate(chosen) if other == value], dtype=np.intp)
            yield columns, self._table(value, int(budgets[columns].max()))

    def _tree_draws(self, budgets: NDArray[np.int64], topk: TopK) -> FloatArray:
        """Draws (512, n), each budget with its topk."""
        draws = np.ones((N_DRAWS, len(budgets)))
        for columns, table in self._by_topk(budgets, topk):
            draws[:, columns] = self._draws(table, budgets[columns])
        return draws

    def predict_mean(self, budgets: ArrayLike, *, topk: TopK = None) -> FloatArray:
        """The values of :meth:`predict_band` alone, (n,)."""
        budget, _ = read_budgets(budgets, largest=MAX_BUDGET)
        mean = np.ones(len(budget))
        for columns, table in self._by_topk(budget, topk):
            mean[columns] = self._mean(table, budget[columns])
        return np.clip(mean, 1.0, 1.0 + np.minimum(budget, self.block_size - 1))

    def predict_band(self, budgets: ArrayLike, *, topk: TopK = None) -> Band:
        """Value, low and high of the accept length at budgets (n,) as arrays; see :meth:`predict`.

        ``topk`` may hold one value for each budget.
        """
        budget, _ = read_budgets(budgets, largest=MAX_BUDGET)
        mean, draws = np.ones(len(budget)), np.ones((N_DRAWS, len(budget)))
        for columns, table in self._by_topk(budget, topk):
            mean[columns] = self._mean(table, budget[columns])
            draws[:, columns] = self._draws(table, budget[columns])
        return band(mean, draws, self.noise_frac, 1.0 + np.minimum(budget, self.block_size - 1), budget > 0)

    @overload
    def predict(self, budget: int, *, topk: TopK = None) -> Estimate: ...
    @overload
    def predict(self, budget: Sequence[int] | NDArray[np.integer], *, topk: TopK = None) -> tuple[Estimate, ...]: ...
    def predict(
        self, budget: int | Sequence[int] | NDArray[np.integer], *, topk: TopK = None
    ) -> Estimate | tuple[Estimate, ...]:
        """Accept length at one budget, or a tuple of them for a sequence.

        The interval is for a measurement on the same prompts with as many rounds as the points fitted: it holds the
        posterior of the curve and the noise of that measurement.

        Args:
            budget: draft nodes without the root, 0 to 1024.
            topk: alternates per depth, one or one for each budget; the fit's own by default. A topk of at least the
                budget is no restriction.

        Raises:
            InputError: a budget is not a whole number from 0 up, or topk is below 1.
            DomainError: a budget is above 1024.
        """
        wanted, scalar = read_budgets(budget, largest=MAX_BUDGET)
        chosen = self._topk_of(wanted, topk)
        answer = self.predict_band(wanted, topk=chosen)
        measured = {
            (point.budget, min(point.topk or point.budget, point.budget))
            for point in self.points
            if point.kind == "tree" and self.shift is None
        }
        asked = [(int(b), min(k or int(b), int(b))) for b, k in zip(wanted, chosen, strict=True)]
        budgets = [float(point.budget) for point in self.points if point.kind == "tree"]
        known = np.array(budgets or [math.nan])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = wanted[:, None] / known
            far = ~(np.maximum(ratio, 1 / ratio) <= _NEAR_FACTOR).any(axis=1) & (wanted > 0)
        estimates = as_estimates(
            answer,
            provenance=[Provenance.MEASURED if pair in measured else Provenance.FITTED for pair in asked],
            extrapolated=far | (self.shift is not None and self.shift.extrapolated),
            note=self._note() if self.chain_to_tree is None else f"{self._note()}; {self.chain_to_tree.note}",
        )
        return estimates[0] if scalar else estimates

    def predict_chain(self, n_drafted: int | Sequence[int] | NDArray[np.integer]) -> Estimate | tuple[Estimate, ...]:
        """Accept length of a chain of the same drafter: the family with one alternate per depth.

        A chain longer than block_size - 1 drafts nothing more and stays at that value.
        """
        wanted, scalar = read_budgets(n_drafted, largest=MAX_BUDGET)
        table = self._table(1, int(wanted.max(initial=1)), TreeShape.BEST_FIRST)
        mean, draws = self._mean(table, wanted, chain=True), self._draws(table, wanted, chain=True)
        cap = 1.0 + np.minimum(wanted, self.block_size - 1)
        measured = {point.budget for point in self.points if point.kind == "chain" and self.shift is None}
        estimates = as_estimates(
            band(mean, draws, self.noise_frac, cap, wanted > 0),
            provenance=[Provenance.MEASURED if int(n) in measured else Provenance.FITTED for n in wanted],
            extrapolated=(wanted > self.block_size - 1) | (self.shift is not None and self.shift.extrapolated),
            note=self._note(),
        )
        return estimates[0] if scalar else estimates

    def sample(self, budgets: ArrayLike, n_samples: int = 256, seed: int = 0, *, topk: TopK = None) -> FloatArray:
        """Joint draws of the accept length, shape (n_samples, n_budgets); equal inputs give equal draws.

        A row is one curve and one run: the noise is shared between near budgets (correlation 1/e at a factor of e^2),
        as it is between runs on the same prompts, so differences between budgets are sharper than the intervals
        suggest. Entries of one budget with different ``topk`` (one for each budget) share it altogether.
        """
        budget, _ = read_budgets(budgets, largest=MAX_BUDGET)
        return self._noisy(budget, self._tree_draws(budget, topk), n_samples, seed)

    def sample_chain(self, n_drafted: ArrayLike, n_samples: int = 256, seed: int = 0) -> FloatArray:
        """As :meth:`sample` for chains. The same seed takes the same posterior draws, so trees and chains are joint."""
        budget, _ = read_budgets(n_drafted, largest=MAX_BUDGET)
        table = self._table(1, int(budget.max(initial=1)), TreeShape.BEST_FIRST)
        return self._noisy(budget, self._draws(table, budget, chain=True), n_samples, seed)

    def _noisy(self, budget: NDArray[np.int64], draws: FloatArray, n_samples: int, seed: int) -> FloatArray:
        """Posterior draws picked by ``seed``, with the noise of a run."""
        rng = np.random.default_rng(seed)
        pick = spread_indices(rng, len(draws), n_samples)
        factor = correlated_noise(budget, n_samples, self.noise_frac, rng)
        return np.clip(draws[pick] * factor, 1.0, 1.0 + np.minimum(budget, self.block_size - 1))

    def at(
        self,
        *,
        domain: Domain | str | None = None,
        temperature: float | None = None,
        context_tok: float | None = None,
        train_context_tok: int | None = None,
    ) -> TreeAcceptance:
        """The fit carried over to other traffic: accepted draft tokens scaled by public ratios, interval widened.

        Args:
            domain: ``code``, ``chat`` or ``math``; unknown or None keeps that of the points.
            temperature: sampling temperature; None keeps that of the points.
            context_tok: mean length of a sequence; None keeps that of the points.
            train_context_tok: longest context the drafter was trained on, where it is known.
        """
        shift = traffic_shift(
            self.points,
            domain=domain,
            temperature=temperature,
            context_tok=context_tok,
            train_context_tok=train_context_tok,
        )
        return self if shift is None else replace(self, shift=shift)

    def with_block_size(self, block_size: int) -> TreeAcceptance:
        """The same drafter quality at another block size (depth cap). Not for a drafter trained at another block
        size."""
        check_block_size(block_size)
        notes = (*self.notes, f"carried over from block_size {self.block_size}")
        return replace(self, block_size=block_size, points=(), notes=notes)

    def _note(self) -> str:
        parts = [_points_note(self.points)] if self.points else []
        parts += list(self.notes)
        if self.shift is not None:
            parts.append(self.shift.note)
        return "; ".join(parts)


def _points_note(points: Sequence[CurvePoint]) -> str:
    shown = ", ".join(f"{p.kind} {p.budget}: {p.accept_len:g}" for p in points[:4])
    more = f" and {len(points) - 4} more" if len(points) > 4 else ""
    return f"fitted on {len(points)} measured point{'s' if len(points) > 1 else ''} ({shown}{more})"


def check_block_size(block_size: object) -> None:
    """Raise :class:`InputError` unless it is a whole number from 2 to 64."""
    whole = isinstance(block_size, Integral) and not isinstance(block_size, bool)
    if not whole or not 2 <= int(block_size) <= 64:  # type: ignore[call-overload]
        raise InputError(
            [
                Problem(
                    "block_size must be a whole number from 2 to 64",
                    field="block_size",
                    value=block_size,
                    hint="tokens of one draft block with the bonus token; paths are at most block_size - 1 deep",
                )
            ]
        )
