"""Trials on a real server: each is one launch with a folder of its own, judged, measured, stopped and recorded.

The folder of a launch is named after the trial and the attempt. The launcher writes its observations there, in one
step, after the server is gone: a launch whose folder has them is finished, whatever was killed afterwards, and is read
instead of being run again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from planner.domain import Observation, Versions, Workload
from planner.errors import InputError, PlannerError, Problem
from planner.launch.bench import BenchPlan
from planner.launch.blocking import refuse_blocking
from planner.launch.gate import TimeLimits
from planner.launch.ledger import Ledger
from planner.launch.ledger.exchange import read_jsonl
from planner.launch.measures import bench_measure
from planner.launch.progress import SilentUi, Ui
from planner.launch.records import Identity
from planner.launch.session import Order, Then, run_launch
from planner.launch.target import Target, target_from_argv
from planner.launch.verdict import Cause, LaunchReport, Stage
from planner.launch.writing import write_atomically
from planner.learn.trial import Result, Trial

__all__ = ["ExperimentStopped", "LaunchRunner", "Subject", "check_folder", "target_of_trial"]

Launcher = Callable[[Order, Ui], LaunchReport]


class ExperimentStopped(PlannerError):
    """Ctrl-C or SIGTERM during a launch: it was stopped and is not counted; the experiment can be continued."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What the launches of an experiment are of."""

    hardware: str = "unknown"
    model: str | None = None
    drafter: str | None = None
    versions: Versions | None = None
    workload: Workload | None = None
    allowed: tuple[str, ...] = ()
    """Limits and findings set aside with a reason."""
    engine_version: str | None = None


def target_of_trial(trial: Trial, subject: Subject, *, python: str | None, env: tuple[tuple[str, str], ...]) -> Target:
    """The server that a trial starts.

    Raises:
        InputError: argv that starts no server.
    """
    target = target_from_argv(trial.argv, env=(*env, *trial.env))
    return target.replace(expected=trial.candidate, versions=subject.versions, workload=subject.workload).with_python(
        python
    )


@dataclass(slots=True)
class LaunchRunner:
    """Runs trials through the launcher, one at a time."""

    folder: Path
    """Holds one folder for each launch."""
    ledger: Path | None
    subject: Subject = field(default_factory=Subject)
    bench: BenchPlan | None = None
    """What is measured; None: only whether the server is right."""
    python: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    limits: TimeLimits = field(default_factory=TimeLimits)
    canary: bool = True
    review: bool = True
    """Whether a launch that a review would refuse is left out."""
    ui: Ui = field(default_factory=SilentUi)
    launcher: Launcher = run_launch

    def run(self, trial: Trial, attempt: int) -> Result:
        """Launch, judge, measure, stop, record.

        Raises:
            ExperimentStopped: interrupted; nothing of this launch is kept.
            LedgerBusyError: the ledger cannot be written; the launch is finished and is not repeated.
        """
        run_dir = self.folder / f"{trial.id}-{attempt}"
        kept = run_dir / "observations.jsonl"
        if not kept.exists():
            refused = self._launch(trial, run_dir)
            if refused is not None:
                return refused
        observations = self.observed(trial, attempt)
        if self.ledger is not None:
            with Ledger(self.ledger, create=True) as opened:
                opened.append(observations, skip_known=True)
        return self._result(observations, took_s=_took_s(run_dir))

    def observed(self, trial: Trial, attempt: int) -> tuple[Observation, ...]:
        """Observations of a launch that ended."""
        kept = self.folder / f"{trial.id}-{attempt}" / "observations.jsonl"
        with kept.open(encoding="utf-8") as stream:
            return tuple(read_jsonl(stream, name=str(kept)))

    def _launch(self, trial: Trial, run_dir: Path) -> Result | None:
        """Runs the launch; a Result only where it was refused before anything started."""
        try:
            target = target_of_trial(trial, self.subject, python=self.python, env=self.env)
            identity = self._identity(target)
            if self.review:
                refuse_blocking(
                    target,
                    hardware=self.subject.hardware,
                    allowed=self.subject.allowed,
                    engine_version=self.subject.engine_version,
                )
        except InputError as error:
            return Result(ok=False, cause="blocked", detail=str(error), launched=False)
        run_dir.mkdir(parents=True, exist_ok=True)
        write_atomically(run_dir / "begun", f"{time.time():.3f}\n")
        measures = ((Stage.BENCH, bench_measure(self.bench, identity)),) if self.bench is not None else ()
        order = Order(
            target=target,
            run_dir=run_dir,
            limits=self.limits,
            then=Then.STOP,
            canary=self.canary,
            measures=measures,
            identity=identity,
        )
        try:
            report = self.launcher(order, self.ui)
        except InputError as error:
            return Result(ok=False, cause="refused", detail=str(error), launched=False)
        if report.cause == Cause.INTERRUPTED:
            raise ExperimentStopped(
                "interrupted; the launch that ran was stopped and is not counted",
                "the same command continues where this one stopped",
            )
        return None

    def _identity(self, target: Target) -> Identity:
        found = Identity.of(target, hardware=self.subject.hardware)
        return replace(
            found,
            model=self.subject.model or found.model,
            drafter=self.subject.drafter or found.drafter,
            source="plan-config experiment",
        )

    def _result(self, observations: tuple[Observation, ...], *, took_s: float) -> Result:
        failed = next((one for one in observations if not one.outcome.ok), None)
        rates = [rate for one in observations if (rate := _rate(one)) is not None]
        return Result(
            ok=failed is None,
            cause="ok" if failed is None else failed.outcome.cause,
            detail="" if failed is None else failed.outcome.detail or "",
            tok_per_s=rates[-1] if failed is None and rates else None,
            took_s=took_s,
            observations=tuple(one.id for one in observations),
        )


def _rate(one: Observation) -> float | None:
    """What trials are ranked by: the client's own tok/s. The rate at full batch is another quantity, and a server that
    admits fewer requests than there are clients never shows it."""
    client = next((metric.value for metric in one.metrics if metric.name == "client_tok_per_s"), None)
    return client if client is not None else one.tok_per_s


def _took_s(run_dir: Path) -> float:
    """From the start of the launch until its observations were written."""
    with contextlib.suppress(OSError, ValueError):
        begun = float((run_dir / "begun").read_text())
        return round(max(0.0, (run_dir / "observations.jsonl").stat().st_mtime - begun), 3)
    return 0.0


def check_folder(folder: Path) -> None:
    """Makes the folder of an experiment.

    Raises:
        InputError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError([Problem(f"cannot be made: {error.strerror}", file=str(folder), field="--dir")]) from None
