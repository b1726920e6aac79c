"""Exact mode: accept length at any budget from logged rounds, each with the drafter's top-k marginals.

Where an engine logs the marginals of each round (and, for calibration, the rank of the token that the target chose),
nothing has to be assumed about their shape: the tree of each round is built and the trees are averaged. Marginals are
never averaged over rounds first: that gives a static tree, which under-predicts.

The drafter's confidence is calibrated first, one temperature per depth: the surrogate trusts it, and drafters are
overconfident.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.domain import Estimate, Provenance
from planner.errors import InputError, Problem
from planner.estimate.acceptance.family import MAX_BUDGET
from planner.estimate.acceptance.gains import best_first_gains, chain_gains, spine_gains
from planner.estimate.acceptance.interval import as_estimates, band, correlated_noise, read_budgets, spread_indices
from planner.estimate.acceptance.posterior import BASE_SD_FRAC, N_DRAWS

__all__ = ["RoundsAcceptance", "acceptance_from_rounds", "calibrate_depths"]

FloatArray = NDArray[np.float64]

_ROUND_SD_FRAC = 0.5
"""SD of the accept length of one round over its mean: 0.34 to 0.50 on public traces."""
_MIN_HITS = 20
"""Rounds that must reach a depth for its own temperature; deeper ones share that of the last such depth."""
_TEMPERATURES = np.exp(np.linspace(np.log(0.25), np.log(4.0), 97))
_MAX_CHUNK = 2_000_000


def _tempered(marginals: FloatArray, temperature: ArrayLike) -> FloatArray:
    """Marginals at a temperature, the mass outside the top-k held as one further outcome. (..., ranks)."""
    rest = np.clip(1 - marginals.sum(axis=-1, keepdims=True), 0.0, 1.0)
    power = 1 / np.asarray(temperature, dtype=float)
    with np.errstate(divide="ignore"):
        log_prob = np.log(np.concatenate([marginals, rest], axis=-1)) * power[..., None]
    weight = np.exp(log_prob - log_prob.max(axis=-1, keepdims=True))
    return np.asarray((weight / weight.sum(axis=-1, keepdims=True))[..., :-1])


def calibrate_depths(marginals: ArrayLike, target_rank: ArrayLike) -> FloatArray:
    """Temperature of each depth that makes the logged choices of the target most likely.

    Args:
        marginals: (rounds, depths, ranks).
        target_rank: rank of the target's token among the alternates, (rounds, depths); ``ranks`` or more where it is
            not among them, -1 where the round did not get that deep (its path was wrong before).

    Returns:
        (depths,), between 0.25 and 4; 1 leaves the marginals as they are.
    """
    probs = np.asarray(marginals, dtype=float)
    ranks = np.asarray(target_rank)
    if ranks.shape != probs.shape[:2] or ranks.dtype.kind not in "iu":
        raise InputError(
            [Problem("target_rank holds integers of shape (rounds, depths)", field="target_rank", value=ranks.shape)]
        )
    temperature = np.ones(probs.shape[1])
    for depth in range(probs.shape[1]):
        seen = np.flatnonzero(ranks[:, depth] >= 0)
        if len(seen) < _MIN_HITS:
            temperature[depth:] = temperature[depth - 1] if depth else 1.0
            break
        rows = probs[seen, depth]
        choice = np.minimum(ranks[seen, depth], rows.shape[1])
        likelihood = []
        for candidate in _TEMPERATURES:
            kept = _tempered(rows, np.full(len(rows), candidate))
            full = np.concatenate([kept, np.clip(1 - kept.sum(axis=1, keepdims=True), 0, 1)], axis=1)
            likelihood.append(np.log(np.maximum(full[np.arange(len(rows)), choice], 1e-12)).sum())
        temperature[depth] = _TEMPERATURES[int(np.argmax(likelihood))]
    return temperature


@dataclass(frozen=True, slots=True, eq=False)
class RoundsAcceptance:
    """Accept length against budget from logged rounds."""

    marginals: FloatArray
    """Calibrated, (rounds, depths, ranks)."""
    temperature: FloatArray
    """Calibration of each depth, (depths,)."""
    calibrated: bool
    spine_guarantee: bool

    @property
    def max_accept_len(self) -> int:
        return int(self.marginals.shape[1]) + 1

    def per_round(self, budgets: ArrayLike, *, topk: int | None = None) -> FloatArray:
        """Expected accept length of each round's own tree at budgets (n,): (rounds, n)."""
        budget, _ = read_budgets(budgets, largest=MAX_BUDGET)
        probs = self.marginals if topk is None else self.marginals[:, :, :topk]
        n_nodes = max(int(budget.max(initial=1)), 1)
        out = np.empty((len(probs), len(budget)))
        step = max(1, _MAX_CHUNK // (n_nodes * 8))
        for start in range(0, len(probs), step):
            rows = probs[start : start + step]
            if self.spine_guarantee:
                gains = spine_gains(rows, n_nodes)
            elif rows.shape[2] == 1:
                chain = chain_gains(rows)
                gains = np.pad(chain, ((0, 0), (0, max(0, n_nodes - chain.shape[1]))))
            else:
                gains = best_first_gains(rows, n_nodes)
            total = np.pad(np.cumsum(gains, axis=1, dtype=float), ((0, 0), (1, 0)))
            out[start : start + step] = 1 + total[:, budget]
        return out

    def _draws(self, budget: NDArray[np.int64], topk: int | None) -> tuple[FloatArray, FloatArray]:
        """Mean (n,) and bootstrap draws of it (512, n)."""
        rounds = self.per_round(budget, topk=topk)
        rng = np.random.default_rng(0)
        weight = rng.multinomial(len(rounds), np.full(len(rounds), 1 / len(rounds)), size=N_DRAWS) / len(rounds)
        return rounds.mean(axis=0), weight @ rounds

    @property
    def noise_frac(self) -> float:
        """Relative noise of a run with as many rounds."""
        return float(np.hypot(BASE_SD_FRAC, _ROUND_SD_FRAC / np.sqrt(len(self.marginals))))

    def predict(
        self, budget: int | Sequence[int] | NDArray[np.integer], *, topk: int | None = None
    ) -> Estimate | tuple[Estimate, ...]:
        """Accept length at one budget, or a tuple for a sequence. ``topk`` narrows the logged alternates."""
        wanted, scalar = read_budgets(budget, largest=MAX_BUDGET)
        mean, draws = self._draws(wanted, topk)
        cap = 1.0 + np.minimum(wanted, self.marginals.shape[1])
        n_ranks = min(topk or self.marginals.shape[2], self.marginals.shape[2])
        note = f"trees of {len(self.marginals)} logged rounds averaged, top {n_ranks} alternates"
        estimates = as_estimates(
            band(mean, draws, self.noise_frac, cap, wanted > 0),
            provenance=[Provenance.DERIVED] * len(wanted),
            extrapolated=np.full(len(wanted), not self.calibrated),
            note=note if self.calibrated else f"{note}; confidence of the drafter not calibrated",
        )
        return estimates[0] if scalar else estimates

    def predict_chain(self, n_drafted: int | Sequence[int]) -> Estimate | tuple[Estimate, ...]:
        """Accept length of the first-choice chain."""
        return self.predict(n_drafted, topk=1)

    def sample(self, budgets: ArrayLike, n_samples: int = 256, seed: int = 0, *, topk: int | None = None) -> FloatArray:
        """Joint draws, shape (n_samples, n_budgets): rounds resampled, and the noise of a run shared between
        budgets."""
        wanted, _ = read_budgets(budgets, largest=MAX_BUDGET)
        _, draws = self._draws(wanted, topk)
        rng = np.random.default_rng(seed)
        pick = spread_indices(rng, len(draws), n_samples)
        factor = correlated_noise(wanted, n_samples, self.noise_frac, rng)
        cap = 1.0 + np.minimum(wanted, self.marginals.shape[1])
        return np.clip(draws[pick] * factor, 1.0, cap)


def acceptance_from_rounds(
    marginals: ArrayLike, *, target_rank: ArrayLike | None = None, spine_guarantee: bool = False
) -> RoundsAcceptance:
    """Exact mode from logged rounds.

    Args:
        marginals: (rounds, depths, ranks), probabilities of the top-k alternates of each depth, largest first. Log at
            least as many alternates as the largest budget asked for, or the engine's topk.
        target_rank: rank of the target's token, (rounds, depths), see :func:`calibrate_depths`. Without it the
            drafter's confidence is taken as it is and answers are marked extrapolated.
        spine_guarantee: the engine puts the whole first-choice chain into the tree first.

    Raises:
        InputError: marginals that are not probabilities sorted downwards.
    """
    probs = np.asarray(marginals, dtype=float)
    problems = []
    if probs.ndim != 3 or probs.size == 0:
        problems.append(Problem("marginals have shape (rounds, depths, ranks)", field="marginals", value=probs.shape))
    elif not np.all(np.isfinite(probs)) or probs.min() < 0 or probs.sum(axis=2).max() > 1 + 1e-4:
        problems.append(
            Problem(
                "each depth of each round holds probabilities that sum to at most 1",
                field="marginals",
                hint="not logits?",
            )
        )
    elif np.any(np.diff(probs, axis=2) > 1e-9):
        problems.append(Problem("alternates are sorted by probability, largest first", field="marginals"))
    if problems:
        raise InputError(problems)
    temperature = np.ones(probs.shape[1])
    if target_rank is not None:
        temperature = calibrate_depths(probs, target_rank)
        probs = _tempered(probs, temperature[None, :])
    return RoundsAcceptance(probs, temperature, target_rank is not None, spine_guarantee)
