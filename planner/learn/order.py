"""Which trial next: expected gain and information per minute, one knob at a time, around what is known to fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.learn.trial import Result, Trial

__all__ = ["Belief", "Choice", "Pool", "choose_next"]

Floats = NDArray[np.float64]

MODEL_ERROR_FRAC = 0.07
"""Relative spread between a measured rate and the best draw of the models that is not shared with other trials."""
KNOB_LIKENESS = 0.6
DRAFT_LIKENESS = 0.35
"""How much of a model's error two trials share when one knob differs: most of it, but for the draft, whose accept length
is another measurement."""
FLAT_SPREAD_FRAC = 0.15
"""Spread of the rate of a trial for which there is no model."""
STOP_GAIN_FRAC = 0.0003
"""No trial is started for an expected gain below this share of the best measured rate."""
FLAKY_CAUSES = frozenset({"exited", "unknown", "died-serving", "collective-timeout", "never-ready", "nccl-error"})
"""Causes that a start may fail with by itself: such a trial is run once more before the failure is believed."""
OTHER_PATH_FRAC = 0.3
"""Chance that a trial runs when one on another path through the engine, asking no more, has failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Trials that may be run, with what the models say of them."""

    trials: tuple[Trial, ...]
    draws: Floats
    """Joint draws of tok/s, ``(n_samples, n)``."""
    minutes: Floats
    """Expected minutes of a launch, weight loading included, ``(n,)``."""
    demands: Floats
    """What a trial asks of the machine, ``(n, d)``: rows, q_len, requests ...; a failure at one point makes every trial
    that asks at least as much of everything, and is otherwise alike, doubtful. NaN: unknown."""
    kinds: tuple[str, ...]
    """Trials of one kind take the same path through the engine: failures carry over inside a kind only, ``(n,)``."""

    def __post_init__(self) -> None:
        n = len(self.trials)
        if self.draws.shape[1:] != (n,) or self.minutes.shape != (n,) or len(self.demands) != n or len(self.kinds) != n:
            raise ValueError("the columns of a pool differ in length")
        if not n:
            raise InputError("there is nothing to try: the space holds no safe candidate", "lift a limit, or widen it")


@dataclass(frozen=True, slots=True)
class Choice:
    """The next trial, and why."""

    index: int
    why: str
    gain_tok_per_s: float


class Belief:
    """What the runs so far say about every trial of a pool."""

    def __init__(self, pool: Pool, finished: Sequence[tuple[Trial, Result]]) -> None:
        self.pool = pool
        self.index = {trial.id: position for position, trial in enumerate(pool.trials)}
        self.rates: dict[int, list[float]] = {}
        self.failures: dict[int, list[str]] = {}
        self.good: list[int] = []
        for trial, result in finished:
            position = self.index.get(trial.id)
            if position is None:
                continue
            if result.ok:
                self.good.append(position)
                if result.tok_per_s is not None:
                    self.rates.setdefault(position, []).append(result.tok_per_s)
            else:
                self.failures.setdefault(position, []).append(result.cause)
        self.good = list(dict.fromkeys(self.good))
        self.weights = self._weights()

    @property
    def best(self) -> int | None:
        """The best measured trial."""
        return max(self.rates, key=lambda position: float(np.median(self.rates[position]))) if self.rates else None

    @property
    def best_rate(self) -> float:
        """Its rate; 0 when nothing was measured."""
        return float(np.median(self.rates[self.best])) if self.best is not None else 0.0

    def _weights(self) -> Floats:
        """Weight of each joint draw: how well it explains the measured rates up to one common factor."""
        n_samples = len(self.pool.draws)
        weights = np.full(n_samples, 1.0 / n_samples)
        if not self.rates:
            return weights
        positions = sorted(self.rates)
        measured = np.log([float(np.median(self.rates[position])) for position in positions])
        apart = measured - np.log(self.pool.draws[:, positions])
        log_likelihood = -0.5 * np.sum((apart / MODEL_ERROR_FRAC) ** 2, axis=1)
        # A tempered likelihood: few draws must not pretend to know more than they can carry.
        temper = 1.0
        for _ in range(30):
            raised = np.exp(temper * (log_likelihood - log_likelihood.max()))
            raised /= raised.sum()
            if 1.0 / np.sum(raised**2) >= min(20.0, n_samples / 4):
                break
            temper *= 0.7
        return np.asarray(raised)

    def rate_draws(self) -> Floats:
        """Draws of every trial's rate given the runs, as ``(n_samples, n)``; use with :attr:`weights`.

        Where trials near in knobs were measured, their ratio to the models carries over, less the more knobs differ.
        """
        draws = np.array(self.pool.draws)
        if not self.rates:
            return draws
        knobs = [dict(trial.knobs) for trial in self.pool.trials]
        names = sorted({name for entry in knobs for name in entry})
        table = np.array([[hash_of(entry.get(name)) for name in names] for entry in knobs], dtype=np.int64)
        centre = np.log(np.average(self.pool.draws, axis=0, weights=self.weights))
        shift, weight = np.zeros(len(knobs)), np.full(len(knobs), 0.5)
        likeness = np.array([DRAFT_LIKENESS if name == "draft" else KNOB_LIKENESS for name in names])
        near_to = {at: np.prod(np.where(table != table[at], likeness, 1.0), axis=1) for at in self.rates}
        for position, rates in self.rates.items():
            near = near_to[position]
            shift += near * (np.log(float(np.median(rates))) - centre[position])
            weight += near
        nearest = np.max(list(near_to.values()), axis=0)
        own = np.random.default_rng(len(self.rates)).standard_normal(draws.shape)
        draws *= np.exp(shift / weight + MODEL_ERROR_FRAC * np.sqrt(1.0 - nearest) * own)
        for position, rates in self.rates.items():
            draws[:, position] = float(np.median(rates))
        return draws

    def believed(self, position: int) -> bool:
        """Whether a trial is taken to fail: never ran, and its failures are not of a kind that comes and goes."""
        causes = self.failures.get(position, [])
        return position not in self.good and bool(causes) and (len(causes) > 1 or causes[0] not in FLAKY_CAUSES)

    def chance(self) -> Floats:
        """Chance that each trial runs, ``(n,)``: none for what asks at least as much as a failed trial of its kind,
        little for the same on another path, unless a good run of its kind asks for as much."""
        pool = self.pool
        kinds = np.array(pool.kinds)
        chance = np.ones(len(pool.trials))
        for position in self.failures:
            if not self.believed(position):
                continue
            at_least = np.all(pool.demands >= pool.demands[position], axis=1)
            chance[at_least & (kinds == kinds[position])] = 0.0
            chance[at_least & (kinds != kinds[position])] *= OTHER_PATH_FRAC
            chance[position] = 0.0
        for position in self.good:
            chance[np.all(pool.demands <= pool.demands[position], axis=1) & (kinds == kinds[position])] = 1.0
        for position in self.failures:
            if self.believed(position):
                chance[position] = 0.0
        return chance


def hash_of(value: str | None) -> int:
    """A number that is equal for equal words, the same in every process."""
    return int.from_bytes((value or "").encode()[:7].ljust(7, b"\0"), "little") ^ (len(value or "") << 56)


def choose_next(
    belief: Belief, *, one_knob: bool = True, minutes_left: float | None = None, first: int | None = None
) -> Choice | None:
    """The trial with the most expected gain per minute, or None when no trial is worth its time.

    Args:
        belief: pool and runs so far.
        one_knob: whether a trial may differ in one knob only from a trial that ran well.
        minutes_left: trials that take longer are left out.
        first: the trial to begin with (the plan), when nothing has run yet.
    """
    pool = belief.pool
    n = len(pool.trials)
    open_trials = np.array([position not in belief.rates and position not in belief.good for position in range(n)])
    if minutes_left is not None:
        open_trials &= pool.minutes <= minutes_left
    for position in belief.failures:
        if open_trials[position] and not belief.believed(position):
            return Choice(position, "failed once: a flaky start is not a limit", 0.0)
    chance = belief.chance()
    open_trials &= chance > 0.0
    if not open_trials.any():
        return None
    if first is not None and not belief.rates and not belief.failures and open_trials[first]:
        return Choice(first, "the plan", float(np.average(pool.draws[:, first])))
    draws = belief.rate_draws()
    gain = np.maximum(0.0, draws - belief.best_rate)
    expected = chance * np.average(gain, axis=0, weights=belief.weights)
    worth_it = expected >= STOP_GAIN_FRAC * belief.best_rate
    if not (open_trials & worth_it).any():
        return None
    if one_knob and belief.good:
        apart = np.array(
            [min(len(trial.changed_from(pool.trials[good])) for good in belief.good) for trial in pool.trials]
        )
        reachable = open_trials & (apart <= 1)
        if not (reachable & worth_it).any():
            return _step_towards(belief, expected, open_trials & worth_it, reachable)
        open_trials = reachable
    score = np.where(open_trials, expected / np.maximum(pool.minutes, 1e-9), -np.inf)
    index = int(np.argmax(score))
    why = f"expected gain {expected[index]:,.0f} tok/s in {pool.minutes[index]:.0f} min"
    return Choice(index, why, float(expected[index]))


def _step_towards(
    belief: Belief, expected: Floats, wanted: NDArray[np.bool_], reachable: NDArray[np.bool_]
) -> Choice | None:
    """One knob on the way to the most promising trial that is further away; None when no such step exists."""
    pool = belief.pool
    goal = int(np.argmax(np.where(wanted, expected / pool.minutes, -np.inf)))
    now = min(len(pool.trials[good].changed_from(pool.trials[goal])) for good in belief.good)
    steps = [
        position
        for position in np.flatnonzero(reachable)
        if len(pool.trials[position].changed_from(pool.trials[goal])) < now
    ]
    if not steps:
        return None
    best = max(steps, key=lambda position: (float(expected[position]), -position))
    return Choice(int(best), f"on the way to {dict(pool.trials[goal].knobs)}", float(expected[best]))
