"""``fit_acceptance``: from one or a few measured accept lengths to a curve over all budgets, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.domain import Domain, Estimate, Provenance
from planner.errors import DomainError, InputError, Problem, nearest_hint
from planner.estimate.acceptance.chain import ChainAcceptance, fit_chain
from planner.estimate.acceptance.conditions import Shift, shift_draws, traffic_shift
from planner.estimate.acceptance.family import MAX_BUDGET, CurveTable, TreeShape, curve_table
from planner.estimate.acceptance.interval import Band, as_estimates, band, correlated_noise, read_budgets
from planner.estimate.acceptance.points import CurvePoint, read_points
from planner.estimate.acceptance.posterior import BASE_SD_FRAC, Posterior, noise_sd_frac, tree_posterior

__all__ = ["TreeAcceptance", "fit_acceptance"]

FloatArray = NDArray[np.float64]

_N_PARAMETERS = 4
_REFUSED_RMS_FRAC = 0.07
"""Points that the best curve misses by more than 7 % (root mean square) are not one curve. Run-to-run spread in public data
is at most 6 %."""
_NEAR_FACTOR = 4.0
"""The figures of docs/acceptance.md hold for budgets within this factor of a measured one."""


@dataclass(frozen=True, slots=True, eq=False)
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

    @property
    def max_accept_len(self) -> int:
        """Longest path and the bonus token."""
        return self.block_size

    def _table(self, topk: int | None, max_budget: int, shape: TreeShape | None = None) -> CurveTable:
        return curve_table(self.block_size - 1, topk=topk, shape=shape or self.shape, max_budget=max_budget)

    def _curves(self, table: CurveTable, budgets: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Mean (n,) and draws (512, n) of the true accept length."""
        mean, draws = self.posterior.mean(table, budgets), self.posterior.curves(table, budgets)
        if self.shift is None:
            return mean, draws
        cap = 1.0 + np.minimum(budgets, self.block_size - 1)
        return (
            np.minimum(1 + (mean - 1) * self.shift.value, cap),
            np.minimum(1 + (draws - 1) * shift_draws(self.shift, len(draws))[:, None], cap),
        )

    def _default_topk(self, topk: int | None) -> int | None:
        chosen = self.topk if topk is None else topk
        if chosen is not None and (not isinstance(chosen, Integral) or isinstance(chosen, bool) or chosen < 1):
            raise InputError([Problem("topk must be a whole number of at least 1", field="topk", value=topk)])
        return chosen

    def predict_band(self, budgets: ArrayLike, *, topk: int | None = None) -> Band:
        """Value, low and high of the accept length at budgets (n,) as arrays; see :meth:`predict`."""
        budget, _ = read_budgets(budgets, largest=MAX_BUDGET)
        table = self._table(self._default_topk(topk), int(budget.max(initial=1)))
        mean, draws = self._curves(table, budget)
        return band(mean, draws, self.noise_frac, 1.0 + np.minimum(budget, self.block_size - 1), budget > 0)

    @overload
    def predict(self, budget: int, *, topk: int | None = None) -> Estimate: ...
    @overload
    def predict(
        self, budget: Sequence[int] | NDArray[np.integer], *, topk: int | None = None
    ) -> tuple[Estimate, ...]: ...
    def predict(
        self, budget: int | Sequence[int] | NDArray[np.integer], *, topk: int | None = None
    ) -> Estimate | tuple[Estimate, ...]:
        """Accept length at one budget, or a tuple of them for a sequence.

        The interval is for a measurement on the same prompts with as many rounds as the points fitted: it holds the posterior
        of the curve and the noise of that measurement.

        Args:
            budget: draft nodes without the root, 0 to 1024.
            topk: alternates per depth; the fit's own by default. A topk of at least the budget is no restriction.

        Raises:
            InputError: a budget is not a whole number from 0 up, or topk is below 1.
            DomainError: a budget is above 1024.
        """
        wanted, scalar = read_budgets(budget, largest=MAX_BUDGET)
        chosen = self._default_topk(topk)
        answer = self.predict_band(wanted, topk=chosen)
        measured = {
            point.budget
            for point in self.points
            if point.kind == "tree"
            and (point.topk or point.budget) >= min(point.budget, chosen or point.budget)
            and (point.topk is None or chosen is None or min(point.topk, point.budget) == min(chosen, point.budget))
        }
        known = np.array([point.budget for point in self.points if point.kind == "tree"] or [np.nan], dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = wanted[:, None] / known
            far = ~(np.maximum(ratio, 1 / ratio) <= _NEAR_FACTOR).any(axis=1) & (wanted > 0)
        estimates = as_estimates(
            answer,
            provenance=[
                Provenance.MEASURED if int(b) in measured and self.shift is None else Provenance.FITTED for b in wanted
            ],
            extrapolated=far | (self.shift is not None and self.shift.extrapolated),
            note=self._note(),
        )
        return estimates[0] if scalar else estimates

    def predict_chain(self, n_drafted: int | Sequence[int] | NDArray[np.integer]) -> Estimate | tuple[Estimate, ...]:
        """Accept length of a chain of the same drafter: the family with one alternate per depth.

        A chain longer than block_size - 1 drafts nothing more and stays at that value.
        """
        wanted, scalar = read_budgets(n_drafted, largest=MAX_BUDGET)
        mean, draws = self._curves(self._table(1, int(wanted.max(initial=1)), TreeShape.BEST_FIRST), wanted)
        cap = 1.0 + np.minimum(wanted, self.block_size - 1)
        measured = {point.budget for point in self.points if point.kind == "chain" and self.shift is None}
        estimates = as_estimates(
            band(mean, draws, self.noise_frac, cap, wanted > 0),
            provenance=[Provenance.MEASURED if int(n) in measured else Provenance.FITTED for n in wanted],
            extrapolated=(wanted > self.block_size - 1) | (self.shift is not None and self.shift.extrapolated),
            note=self._note(),
        )
        return estimates[0] if scalar else estimates

    def sample(self, budgets: ArrayLike, n_samples: int = 256, seed: int = 0, *, topk: int | None = None) -> FloatArray:
        """Joint draws of the accept length, shape (n_samples, n_budgets); equal inputs give equal draws.

        A row is one curve and one run: the noise is shared between near budgets (correlation 1/e at a factor of e^2), as it is
        between runs on the same prompts, so differences between budgets are sharper than the intervals suggest.
        """
        budget, _ = read_budgets(budgets, largest=MAX_BUDGET)
        table = self._table(self._default_topk(topk), int(budget.max(initial=1)))
        return self._sample(table, budget, n_samples, seed)

    def sample_chain(self, n_drafted: ArrayLike, n_samples: int = 256, seed: int = 0) -> FloatArray:
        """As :meth:`sample` for chains. The same seed takes the same posterior draws, so trees and chains are joint."""
        budget, _ = read_budgets(n_drafted, largest=MAX_BUDGET)
        table = self._table(1, int(budget.max(initial=1)), TreeShape.BEST_FIRST)
        return self._sample(table, budget, n_samples, seed)

    def _sample(self, table: CurveTable, budget: NDArray[np.int64], n_samples: int, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        pick = _draw_indices(rng, len(self.posterior.draws), n_samples)
        _, draws = self._curves(table, budget)
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
        """The same drafter quality at another block size (depth cap). Not for a drafter trained at another block size."""
        _check_block_size(block_size)
        notes = (*self.notes, f"carried over from block_size {self.block_size}")
        return replace(self, block_size=block_size, points=(), notes=notes)

    def _note(self) -> str:
        parts = [_points_note(self.points)] if self.points else []
        parts += list(self.notes)
        if self.shift is not None:
            parts.append(self.shift.note)
        return "; ".join(parts)


def _draw_indices(rng: np.random.Generator, n_draws: int, n_samples: int) -> NDArray[np.int64]:
    """``n_samples`` draws spread evenly over the posterior draws, in random order."""
    if n_samples < 1:
        raise InputError([Problem("n_samples must be at least 1", field="n_samples", value=n_samples)])
    spread = np.floor((np.arange(n_samples) + rng.random()) * n_draws / n_samples).astype(np.int64)
    return rng.permutation(np.minimum(spread, n_draws - 1))


def _points_note(points: Sequence[CurvePoint]) -> str:
    shown = ", ".join(f"{p.kind} {p.budget}: {p.accept_len:g}" for p in points[:4])
    more = f" and {len(points) - 4} more" if len(points) > 4 else ""
    return f"fitted on {len(points)} measured point{'s' if len(points) > 1 else ''} ({shown}{more})"


def _check_block_size(block_size: object) -> None:
    if not isinstance(block_size, Integral) or isinstance(block_size, bool) or not 2 <= block_size <= 64:
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


def _contradiction(points: Sequence[CurvePoint], posterior: Posterior, sd_frac: FloatArray) -> None:
    """Points that no curve of the family comes near are not one curve."""
    rms = posterior.misfit * float(np.sqrt(np.mean(sd_frac**2)))
    if rms <= _REFUSED_RMS_FRAC:
        return
    shown = ", ".join(f"{p.accept_len:g} at budget {p.budget}" for p in points)
    raise InputError(
        f"the points contradict each other ({shown}): the nearest curve misses them by {100 * rms:.0f} % (root mean square)",
        "the budget alone cannot explain it: other prompts, a bonus token counted in some runs only, or a broken verify pass; "
        "measure the budgets on one prompt set and fit them apart until then",
    )


def fit_acceptance(
    points: Iterable[object],
    block_size: int = 16,
    topk: int | None = None,
    kind: str = "tree",
    *,
    tree_shape: TreeShape | str = TreeShape.BEST_FIRST,
) -> TreeAcceptance | ChainAcceptance:
    """Fit accept length against draft budget to a few measured points.

    Args:
        points: ``(budget, accept_len)`` or ``(budget, accept_len, rounds)`` tuples, mappings with these and ``topk``, ``kind``,
            ``domain``, ``context_tok``, ``temperature``, ``bonus_counted``, or profile points. Budgets exclude the root;
            accept lengths include the bonus token. A tree fit may hold chain points of the same drafter.
        block_size: tokens of one draft block with the bonus token (EAGLE: steps + 1; MTP: heads + 1).
        topk: alternates per depth of the points that do not say; None: no restriction.
        kind: ``tree`` or ``chain`` (a chain drafter, MTP heads: logit-decay form over drafted tokens).
        tree_shape: how the engine picks nodes: ``best_first``, ``spine`` or ``eagle``.

    Returns:
        A :class:`TreeAcceptance` or :class:`ChainAcceptance`; both have ``predict`` and ``sample``.

    Raises:
        InputError: no points, a point above its cap, duplicated or contradictory points, traffic or bonus counting mixed.
        DomainError: a budget above 1024.
    """
    _check_block_size(block_size)
    if kind not in ("tree", "chain"):
        raise InputError(
            [
                Problem(
                    "kind is tree or chain", field="kind", value=kind, hint=nearest_hint(str(kind), ("tree", "chain"))
                )
            ]
        )
    if topk is not None and (not isinstance(topk, Integral) or isinstance(topk, bool) or topk < 1):
        raise InputError([Problem("topk must be a whole number of at least 1", field="topk", value=topk)])
    try:
        shape = TreeShape(tree_shape)
    except ValueError:
        known = [item.value for item in TreeShape]
        raise InputError(
            [
                Problem(
                    "unknown tree shape",
                    field="tree_shape",
                    value=tree_shape,
                    hint=nearest_hint(str(tree_shape), known),
                )
            ]
        ) from None
    read = read_points(points, kind=kind, max_depth=block_size - 1)
    if kind == "chain":
        return fit_chain(read, block_size=block_size)
    return _fit_tree(read, block_size=block_size, topk=topk, shape=shape)


def _fit_tree(points: tuple[CurvePoint, ...], *, block_size: int, topk: int | None, shape: TreeShape) -> TreeAcceptance:
    points = tuple(replace(p, topk=p.topk or topk) if p.kind == "tree" else p for p in points)
    too_large = [p.budget for p in points if p.budget > MAX_BUDGET]
    if too_large:
        raise DomainError(f"budgets above {MAX_BUDGET} are outside the model: {too_large}")
    columns = []
    for point in points:
        chain = point.kind == "chain"
        table = curve_table(
            block_size - 1,
            topk=1 if chain else point.topk,
            shape=TreeShape.BEST_FIRST if chain else shape,
            max_budget=point.budget,
        )
        columns.append(table.at([point.budget])[:, 0])
    rounds = np.array([np.nan if p.rounds is None else p.rounds for p in points], dtype=float)
    sd_frac = noise_sd_frac(rounds)
    posterior = tree_posterior(columns, np.array([p.accept_len for p in points]), sd_frac)
    _contradiction(points, posterior, sd_frac)
    notes = []
    if len(points) < _N_PARAMETERS:
        notes.append(f"{len(points)} of {_N_PARAMETERS} parameters measured, the prior holds the rest")
    noise = float(np.sqrt(np.mean(sd_frac**2)))
    if posterior.misfit > 1:
        noise = min(noise * posterior.misfit, _REFUSED_RMS_FRAC)
        notes.append(f"the points scatter by {100 * noise:.1f} % about the curve, more than assumed")
    if all(p.bonus_counted is None for p in points):
        notes.append("bonus token taken as counted (not stated)")
    common = {p.topk for p in points if p.kind == "tree"}
    default_topk = topk if topk is not None else (common.pop() if len(common) == 1 else None)
    return TreeAcceptance(
        block_size=block_size,
        topk=default_topk,
        shape=shape,
        points=points,
        posterior=posterior,
        noise_frac=max(noise, BASE_SD_FRAC),
        notes=tuple(notes),
    )
