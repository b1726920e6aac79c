"""The loop: choose, run, write down, again; and what it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from planner.domain import Value
from planner.learn.journal import Journal
from planner.learn.order import Belief, Choice, Pool, choose_next
from planner.learn.trial import Result, Runner, Trial

__all__ = ["Cost", "SweepReport", "Tried", "cost_of", "report_of", "sweep"]


class Tried(Value):
    """One trial with its runs."""

    trial: Trial
    results: tuple[Result, ...]

    @property
    def tok_per_s(self) -> float | None:
        """Median rate of the good runs."""
        rates = [result.tok_per_s for result in self.results if result.ok and result.tok_per_s is not None]
        return float(np.median(rates)) if rates else None


class Cost(Value):
    """What an experiment took."""

    n_launches: int
    minutes: float
    gpu_hours: float


def cost_of(journal: Journal, *, n_gpus: int) -> Cost:
    """Launches of a journal; those that were refused before a start count for nothing."""
    launched = [result for _, result in journal.finished if result.launched]
    minutes = sum(result.took_s for result in launched) / 60.0
    return Cost(n_launches=len(launched), minutes=minutes, gpu_hours=minutes / 60.0 * n_gpus)


class SweepReport(Value):
    """What a sweep found and what it cost."""

    best: Tried | None
    tried: tuple[Tried, ...]
    """In the order of their first run."""
    causes: tuple[tuple[str, int], ...]
    """How often each cause ended a launch."""
    cost: Cost
    why_stopped: str
    notes: tuple[str, ...] = ()


def sweep(
    pool: Pool,
    runner: Runner,
    journal: Journal,
    *,
    n_gpus: int = 1,
    first: Trial | None = None,
    one_knob: bool = True,
    budget_minutes: float | None = None,
    max_launches: int | None = None,
    say: Callable[[Choice, Trial], None] | None = None,
) -> SweepReport:
    """Run trials until none is worth its time or the budget is spent.

    A journal that holds finished trials continues where it stopped: none of them is run again. A trial that fails
    without a known cause is tried again before it is believed; what a failed trial makes doubtful is set aside, and the
    next safe trial takes its place.

    Args:
        pool: what may be run; trials that a limit forbids are not in it.
        runner: runs a trial and leaves nothing behind.
        journal: what has been done, on disk.
        n_gpus: GPUs of the box, for the GPU hours of the report.
        first: the trial to begin with.
        one_knob: whether a trial may differ in one knob only from one that ran well.
        budget_minutes: minutes of launches in all, those of the journal included.
        max_launches: launches in all, likewise.
        say: told of each trial before it runs.
    """
    start = next((i for i, trial in enumerate(pool.trials) if first is not None and trial.id == first.id), None)
    why = "no trial left is worth its time"
    while True:
        cost = cost_of(journal, n_gpus=n_gpus)
        used = cost.minutes
        if max_launches is not None and cost.n_launches >= max_launches:
            why = f"{max_launches} launches are done"
            break
        left = None if budget_minutes is None else budget_minutes - used
        if left is not None and left <= 0:
            why = f"the budget of {budget_minutes:g} minutes is spent"
            break
        belief = Belief(pool, journal.finished)
        choice = choose_next(belief, one_knob=one_knob, minutes_left=left, first=start)
        if choice is None:
            if left is not None and choose_next(belief, one_knob=one_knob, first=start) is not None:
                why = f"{left:.0f} minutes are left, too few for another launch"
            elif one_knob and choose_next(belief, one_knob=False, minutes_left=left) is not None:
                why = "what is worth its time differs in more than one knob from what ran (--many-knobs tries it)"
            break
        trial = pool.trials[choice.index]
        if say is not None:
            say(choice, trial)
        journal.started(trial, why=choice.why)
        journal.ended(trial, runner.run(trial, len(journal.results_of(trial.id)) + 1))
    return report_of(journal, n_gpus=n_gpus, why=why)


def report_of(journal: Journal, *, n_gpus: int, why: str) -> SweepReport:
    """The report of a journal as it stands."""
    by_id: dict[str, tuple[Trial, list[Result]]] = {}
    for trial, result in journal.finished:
        by_id.setdefault(trial.id, (trial, []))[1].append(result)
    tried = tuple(Tried(trial=trial, results=tuple(results)) for trial, results in by_id.values())
    measured = [one for one in tried if one.tok_per_s is not None]
    causes = Counter(result.cause for _, result in journal.finished)
    return SweepReport(
        best=max(measured, key=lambda one: one.tok_per_s or 0.0) if measured else None,
        tried=tried,
        causes=tuple(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        cost=cost_of(journal, n_gpus=n_gpus),
        why_stopped=why,
    )
