"""Which trial next: expected gain per minute under what the runs so far say, one knob at a time, around known failures.

The belief is Gaussian in the logarithm of the rate. What two trials share makes them alike: one common factor (all
rates of a model are off together), the joint draws of the models, and for each knob the value that both have. A value
of a knob may be slow for a reason that no model knows; one launch with it says so for every trial that has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.learn.propose import POINTS_TO
from planner.learn.trial import FLAKY_CAUSES, Result, Trial

__all__ = ["Belief", "Choice", "Pool", "choose_next"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

COMMON_SPREAD = 10.0
"""Log spread of the factor that all trials share: the level is what the first measurement says, not a model."""
KNOB_SPREAD = 0.06
"""Log spread of what a value of one knob is worth beyond the models: NVLS is worth 5 to 6 % (FN-13)."""
DRAFT_SPREAD = 0.09
"""The same for the draft, whose accept length is a measurement of its own."""
NOISE_SPREAD = 0.02
"""Log spread of repeated measurements."""
FLAT_SPREAD_FRAC = 0.15
"""Spread of the rate of a trial for which there is no model."""
STOP_GAIN_FRAC = 0.0004
"""No trial is started for an expected gain below this share of the best measured rate."""
FLAKY_CONFIRM = 3
"""Failures without a known cause before a trial is given up: one start in ten that fails by itself does so three times
in a row in one case of a thousand."""
OTHER_PATH_FRAC = 0.3
"""Chance that a trial runs when one on another path through the engine, asking no more, has failed for its size."""
SAME_PATH_FRAC = 0.1
"""Chance that a trial runs when one on the same path has failed for a cause that does not speak of sizes."""


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
    apart: NDArray[np.int64] = field(init=False)
    """Knobs in which two trials differ, ``(n, n)``."""
    mean: Floats = field(init=False)
    """Mean of the log rate before any run, ``(n,)``."""
    covariance: Floats = field(init=False)
    """Its covariance, ``(n, n)``."""

    def __post_init__(self) -> None:
        n = len(self.trials)
        if self.draws.shape[1:] != (n,) or self.minutes.shape != (n,) or len(self.demands) != n or len(self.kinds) != n:
            raise ValueError("the columns of a pool differ in length")
        if not n:
            raise InputError("there is nothing to try: the space holds no safe candidate", "lift a limit, or widen it")
        entries = [dict(trial.knobs) for trial in self.trials]
        apart = np.zeros((n, n), dtype=np.int64)
        log_draws = np.log(self.draws)
        centred = log_draws - log_draws.mean(axis=0)
        covariance = COMMON_SPREAD**2 + centred.T @ centred / max(1, len(self.draws) - 1)
        for name in sorted({name for entry in entries for name in entry}):
            words = sorted({entry.get(name, "") for entry in entries})
            column = np.array([words.index(entry.get(name, "")) for entry in entries])
            same = column[:, None] == column[None, :]
            apart += ~same
            covariance += (DRAFT_SPREAD if name == "draft" else KNOB_SPREAD) ** 2 * same
        object.__setattr__(self, "apart", apart)
        object.__setattr__(self, "mean", log_draws.mean(axis=0))
        object.__setattr__(self, "covariance", covariance)


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
        index = {trial.id: position for position, trial in enumerate(pool.trials)}
        self.rates: dict[int, list[float]] = {}
        self.failures: dict[int, list[str]] = {}
        self.refused: set[int] = set()
        """Never started: they say nothing about the others."""
        good: list[int] = []
        for trial, result in finished:
            position = index.get(trial.id)
            if position is None:
                continue
            if not result.launched:
                self.refused.add(position)
                continue
            if not result.ok:
                self.failures.setdefault(position, []).append(result.cause)
                continue
            good.append(position)
            if result.tok_per_s is not None:
                self.rates.setdefault(position, []).append(result.tok_per_s)
        self.good = tuple(dict.fromkeys(good))

    @property
    def best_rate(self) -> float:
        """The best measured rate; 0 when nothing was measured."""
        return max((float(np.median(rates)) for rates in self.rates.values()), default=0.0)

    def log_rate(self) -> tuple[Floats, Floats]:
        """Mean and spread of the log rate of every trial given the runs, ``(n,)`` each."""
        pool = self.pool
        variance = np.diag(pool.covariance)
        if not self.rates:
            return pool.mean, np.sqrt(variance)
        seen = sorted(self.rates)
        measured = np.log([float(np.median(self.rates[position])) for position in seen])
        noise = np.array([NOISE_SPREAD**2 / len(self.rates[position]) for position in seen])
        gain = np.linalg.solve(pool.covariance[np.ix_(seen, seen)] + np.diag(noise), pool.covariance[seen])
        mean = pool.mean + (measured - pool.mean[seen]) @ gain
        return mean, np.sqrt(np.maximum(variance - np.sum(pool.covariance[seen] * gain, axis=0), 1e-12))

    def expected_gain(self) -> Floats:
        """Expected tok/s above the best measured rate, should the trial run, ``(n,)``."""
        mean, spread = self.log_rate()
        best = self.best_rate
        if best <= 0.0:
            return np.asarray(np.exp(mean))
        above = (mean - math.log(best)) / spread
        return np.asarray(np.exp(mean + 0.5 * spread**2) * _normal(above + spread) - best * _normal(above))

    def believed(self, position: int) -> bool:
        """Whether a trial is taken to fail: never ran, and has failed as often as its causes ask for."""
        causes = self.failures.get(position, [])
        if position in self.good or not causes:
            return False
        return len(causes) >= FLAKY_CONFIRM or any(cause not in FLAKY_CAUSES for cause in causes)

    def chance(self) -> Floats:
        """Chance that each trial runs, ``(n,)``.

        After a failure for want of room (rows, q_len, memory): none for what asks at least as much of everything on the
        same path through the engine, little on another path. After any other known failure, which a setting caused:
        little for the whole path. A good run clears what asks no more on its path.
        """
        pool = self.pool
        kinds = np.array(pool.kinds)
        chance = np.ones(len(pool.trials))
        failed = [position for position in self.failures if self.believed(position)]
        for position in failed:
            causes = {cause for cause in self.failures[position] if cause not in FLAKY_CAUSES}
            same = kinds == kinds[position]
            at_least = np.all(pool.demands >= pool.demands[position], axis=1)
            if causes & POINTS_TO.keys():
                chance[at_least & same] = 0.0
                chance[at_least & ~same] *= OTHER_PATH_FRAC
            elif causes:
                chance[same] = np.minimum(chance[same], SAME_PATH_FRAC)
            else:
                chance[at_least & same] *= OTHER_PATH_FRAC
        for position in self.good:
            chance[np.all(pool.demands <= pool.demands[position], axis=1) & (kinds == kinds[position])] = 1.0
        chance[failed] = 0.0
        return chance


def _normal(x: Floats) -> Floats:
    """Distribution function of the standard normal."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in x])


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
    open_trials = np.ones(len(pool.trials), dtype=bool)
    open_trials[[*belief.good, *belief.refused]] = False
    if minutes_left is not None:
        open_trials &= pool.minutes <= minutes_left
    for position in belief.failures:
        if open_trials[position] and not belief.believed(position):
            return Choice(position, "failed before for no known reason: a flaky start is not a limit", 0.0)
    chance = belief.chance()
    open_trials &= chance > 0.0
    expected = chance * belief.expected_gain()
    if not belief.good and not belief.failures and first is not None and open_trials[first]:
        return Choice(first, "the plan", float(expected[first]))
    wanted = open_trials & (expected > STOP_GAIN_FRAC * belief.best_rate)
    if not wanted.any():
        return None
    steps, towards = _paths(pool, belief.good, open_trials) if one_knob and belief.good else (None, None)
    price = pool.minutes * (steps if steps is not None else 1.0)
    score = np.where(wanted, expected / np.maximum(price, 1e-9), 0.0)
    goal = int(np.argmax(score))
    if score[goal] <= 0.0:
        return None
    if towards is None or towards[goal] == goal:
        why = f"expected gain {expected[goal]:,.0f} tok/s in {pool.minutes[goal]:.0f} min"
        return Choice(goal, why, float(expected[goal]))
    step = int(towards[goal])
    changed = ", ".join(pool.trials[step].changed_from(pool.trials[goal]))
    why = f"one knob at a time, on the way to {expected[goal]:,.0f} tok/s more; then {changed}"
    return Choice(step, why, float(expected[step]))


def _paths(pool: Pool, good: Sequence[int], open_trials: Bools) -> tuple[Floats, NDArray[np.int64]]:
    """For each trial the launches to it from those that ran well, one knob at a time, and the first of them.

    Returns:
        steps, ``(n,)``: infinite where no such way leads.
        towards, ``(n,)``: index of the first launch on the way, -1 where there is none.
    """
    n = len(pool.trials)
    steps, towards = np.full(n, np.inf), np.full(n, -1, dtype=np.int64)
    reached, n_steps = np.zeros(n, dtype=bool), 0
    reached[list(good)] = True
    ring = reached.copy()
    while ring.any():
        n_steps += 1
        neighbours = (pool.apart[ring] <= 1).any(axis=0) & open_trials & ~reached
        for position in np.flatnonzero(neighbours):
            steps[position] = n_steps
            before = np.flatnonzero(ring & (pool.apart[position] <= 1))[0]
            towards[position] = position if n_steps == 1 else towards[before]
        reached |= neighbours
        ring = neighbours
    return steps, towards
