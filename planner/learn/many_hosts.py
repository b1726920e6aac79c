"""Sweeps on several hosts: one trial a host at a time, one journal and one ledger, both written here.

A host is anything with ``submit`` and ``wait``: a Ray cluster (extra ``ray``), or an executor of one's own. A host that
is lost costs the trial that it ran, which goes back into the pool; what it had finished is in the journal already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from planner.domain import Observation
from planner.errors import MissingDataError
from planner.learn.journal import Journal
from planner.learn.order import Belief, Choice, Pool, choose_next
from planner.learn.running import LaunchRunner
from planner.learn.sweep import SweepReport, cost_of, report_of
from planner.learn.trial import Result, Trial

__all__ = ["Done", "HostRun", "Hosts", "RayHosts", "ledger_recorder", "sweep_hosts"]

Run = Callable[[Trial, int], tuple[Result, tuple[Observation, ...]]]
"""Runs a trial where it is called and returns its observations, which go into the ledger of the caller."""


@dataclass(frozen=True, slots=True)
class Done:
    """A trial that ended on a host. ``result`` is None when the host was lost."""

    host: str
    result: Result | None
    observations: tuple[Observation, ...] = ()


class Hosts(Protocol):
    """Where trials run."""

    def names(self) -> Sequence[str]:
        """Hosts that are there now."""
        ...

    def submit(self, host: str, trial: Trial, attempt: int) -> None:
        """Begins a trial on an idle host."""
        ...

    def wait(self) -> Done:
        """The next trial that ends."""
        ...


def sweep_hosts(
    pool: Pool,
    hosts: Hosts,
    journal: Journal,
    *,
    record: Callable[[tuple[Observation, ...]], None] | None = None,
    n_gpus: int = 1,
    first: Trial | None = None,
    one_knob: bool = True,
    budget_minutes: float | None = None,
    max_launches: int | None = None,
    say: Callable[[str, Choice, Trial], None] | None = None,
) -> SweepReport:
    """:func:`planner.learn.sweep.sweep` with a trial on every idle host.

    Args:
        hosts: where trials run.
        record: writes observations into the ledger, before the journal says that the trial ended.
        n_gpus: GPUs of one host.
        budget_minutes: minutes of launches in all, summed over the hosts.
        say: told of each trial with its host before it runs.
    """
    start = next((i for i, trial in enumerate(pool.trials) if first is not None and trial.id == first.id), None)
    running: dict[str, Trial] = {}
    lost: set[str] = set()
    why = "no trial left is worth its time"
    while True:
        cost = cost_of(journal, n_gpus=n_gpus)
        left = None if budget_minutes is None else budget_minutes - cost.minutes
        spent = max_launches is not None and cost.n_launches + len(running) >= max_launches
        for host in hosts.names():
            if host in running or host in lost or spent or (left is not None and left <= 0):
                continue
            choice = _next(pool, journal, running, one_knob=one_knob, minutes_left=left, first=start)
            if choice is None:
                break
            trial = pool.trials[choice.index]
            if say is not None:
                say(host, choice, trial)
            journal.started(trial, why=choice.why)
            hosts.submit(host, trial, len(journal.results_of(trial.id)) + 1)
            running[host] = trial
            spent = max_launches is not None and cost.n_launches + len(running) >= max_launches
        if not running:
            if lost.issuperset(hosts.names()):
                why = "no host is left"
            elif spent:
                why = f"{max_launches} launches are done"
            elif left is not None and left <= 0:
                why = f"the budget of {budget_minutes:g} minutes is spent"
            break
        done = hosts.wait()
        trial = running.pop(done.host)
        if done.result is None:
            lost.add(done.host)
            continue
        if record is not None and done.observations:
            record(done.observations)
        journal.ended(trial, done.result)
    if lost:
        why += f"; {len(lost)} hosts were lost with the trial that each ran, which went back into the pool"
    return report_of(journal, n_gpus=n_gpus, why=why)


def _next(
    pool: Pool,
    journal: Journal,
    running: dict[str, Trial],
    *,
    one_knob: bool,
    minutes_left: float | None,
    first: int | None,
) -> Choice | None:
    """The best trial that does not run yet: those that run are left out as if they had been refused."""
    busy = [(trial, Result(ok=False, cause="running", launched=False)) for trial in running.values()]
    belief = Belief(pool, [*journal.finished, *busy])
    return choose_next(belief, one_knob=one_knob, minutes_left=minutes_left, first=first)


@dataclass(frozen=True, slots=True)
class HostRun:
    """Runs a trial through the launcher of the machine on which it is called."""

    runner: LaunchRunner
    """With ``ledger`` None: the observations go to the caller."""

    def __call__(self, trial: Trial, attempt: int) -> tuple[Result, tuple[Observation, ...]]:
        """The result and what was observed."""
        result = self.runner.run(trial, attempt)
        return result, self.runner.observed(trial, attempt) if result.launched else ()


class RayHosts:
    """The nodes of a Ray cluster. Call ``ray.init`` first; every node has the planner and SGLang installed."""

    def __init__(self, run: Run, *, gpus_per_trial: float = 0.0) -> None:
        """``run`` is sent to the nodes (it must pickle).

        Raises:
            MissingDataError: Ray is not installed.
        """
        try:
            import ray
        except ImportError:
            raise MissingDataError("Ray is not installed", "pip install 'plan-config[ray]'") from None
        self._ray = ray
        self._run = ray.remote(lambda trial, attempt: run(trial, attempt))
        self._gpus = gpus_per_trial
        self._tasks: dict[Any, str] = {}

    def names(self) -> Sequence[str]:
        """Ids of the living nodes."""
        return [node["NodeID"] for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]

    def submit(self, host: str, trial: Trial, attempt: int) -> None:
        """Begins a trial on a node, there or nowhere."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        where = NodeAffinitySchedulingStrategy(node_id=host, soft=False)
        options = self._run.options(scheduling_strategy=where, num_gpus=self._gpus, max_retries=0)
        self._tasks[options.remote(trial, attempt)] = host

    def wait(self) -> Done:
        """The next trial that ends; one whose node or worker died has no result."""
        (ref,), _ = self._ray.wait(list(self._tasks), num_returns=1)
        host = self._tasks.pop(ref)
        errors = self._ray.exceptions
        lost = (
            errors.RaySystemError,
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.TaskUnschedulableError,
            errors.ObjectLostError,
        )
        try:
            result, observations = self._ray.get(ref)
        except lost:
            return Done(host, None)
        return Done(host, result, observations)


def ledger_recorder(path: Path) -> Callable[[tuple[Observation, ...]], None]:
    """``record`` for :func:`sweep_hosts` into a ledger; observations that are there already are left out."""
    from planner.launch.ledger import Ledger

    def record(observations: tuple[Observation, ...]) -> None:
        with Ledger(path, create=True) as opened:
            opened.append(observations, skip_known=True)

    return record
