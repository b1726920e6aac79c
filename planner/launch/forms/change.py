"""Change a unit or container to a new plan, judge it, keep it or roll it back."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from planner.diagnose import redact, redact_argv
from planner.errors import PlannerError
from planner.launch.client import ServerClient
from planner.launch.forms.base import Form, FormError, Snapshot
from planner.launch.gate import Gate, TimeLimits
from planner.launch.host import HostLostError, SshHost
from planner.launch.logwatch import LogWatch, digest
from planner.launch.process import Ending
from planner.launch.progress import Ui
from planner.launch.session import free_port, interruptible
from planner.launch.target import Target
from planner.launch.verdict import Cause, JudgedError, LaunchReport, Mismatch, Stage, StageReport
from planner.launch.writing import keep_old, write_atomically

__all__ = ["deploy"]

STATE_EVERY_S = 2.0
"""How often the service manager is asked; over ssh each question is a connection."""


@dataclass(slots=True)
class _Managed:
    """A unit or container as the gate sees it."""

    form: Form
    _asked_at: float = 0.0
    _ending: Ending | None = None

    @property
    def log_fault(self) -> str | None:
        """The service manager keeps the log."""
        return None

    def drain(self) -> None:
        """Gives the follower a moment to print the rest."""
        time.sleep(1.0)

    def poll(self, *, wait_s: float = 0.0) -> Ending | None:
        """Asks at most every STATE_EVERY_S."""
        now = time.monotonic()
        if self._ending is None and now - self._asked_at >= STATE_EVERY_S:
            self._asked_at = now
            try:
                state = self.form.state()
            except HostLostError:
                self._ending = Ending(lost=True, remote=True)
            else:
                if not state.running:
                    self._ending = Ending(code=state.code)
        return self._ending


@dataclass(slots=True)
class _Run:
    """Report in the making."""

    stages: list[StageReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stage: Stage = Stage.PREFLIGHT
    mismatches: tuple[Mismatch, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def timed(self, stage: Stage, ui: Ui) -> Iterator[None]:
        self.stage = stage
        start = time.monotonic()
        ui.step(stage.value)
        ok = False
        try:
            yield
            ok = True
        finally:
            self.stages.append(StageReport(stage=stage, ok=ok, took_s=round(time.monotonic() - start, 3)))
        ui.say(f"{stage.value}: ok ({time.monotonic() - start:.1f} s)")


def deploy(
    form: Form, target: Target, *, run_dir: Path, limits: TimeLimits, ui: Ui, canary: bool = True
) -> LaunchReport:
    """Changes ``form`` to ``target``; rolls back to what was there when the new server is not right.

    Raises:
        InputError: found before anything was changed.
        HostLostError: the host could not be reached before anything was changed.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    keep_old(run_dir / "server.log")
    run = _Run()
    judged = JudgedError(Cause.OK, "")
    with interruptible():
        with run.timed(Stage.PREFLIGHT, ui):
            run.notes += form.check()
            before = form.snapshot()
        try:
            with _reach(form, target) as base_url:
                try:
                    _switch_and_judge(form, target, base_url, run_dir / "server.log", limits, ui, run, canary)
                    form.settle()
                except (JudgedError, FormError, HostLostError, KeyboardInterrupt) as error:
                    judged = _judgement(error)
                    _roll_back(form, target, before, base_url, run_dir, limits, ui, run)
        except HostLostError as error:
            judged = JudgedError(Cause.HOST_LOST, str(error))
    log = LogWatch(run_dir / "server.log")
    log.read()
    diagnosis = None if log.empty or judged.cause == Cause.OK else log.diagnosis()
    state_ok = judged.cause == Cause.OK
    report = LaunchReport(
        ok=state_ok,
        cause=judged.cause,
        detail=redact(judged.detail),
        stage=run.stage,
        stages=tuple(run.stages),
        base_url=target.base_url,
        argv=redact_argv(target.argv),
        log=str(log.path) if log.path.exists() else None,
        log_digest=digest(log.path),
        mismatches=run.mismatches,
        canary=tuple(run.figures.items()),
        diagnosis_cause=diagnosis.cause if diagnosis else None,
        diagnosis_lines=tuple(line.text for line in diagnosis.lines) if diagnosis else (),
        remedies=diagnosis.remedies if diagnosis and diagnosis.cause == judged.cause else (),
        notes=tuple(run.notes),
        serving=state_ok or before.was_running,
    )
    write_atomically(run_dir / "report.json", report.model_dump_json(indent=1) + "\n")
    return report


def _judgement(error: BaseException) -> JudgedError:
    if isinstance(error, JudgedError):
        return error
    if isinstance(error, HostLostError):
        return JudgedError(Cause.HOST_LOST, str(error))
    if isinstance(error, KeyboardInterrupt):
        return JudgedError(Cause.INTERRUPTED, str(error))
    return JudgedError(Cause.START_FAILED, str(error))


@contextlib.contextmanager
def _reach(form: Form, target: Target) -> Iterator[str]:
    """Address of the server from here: its own, or the near end of an ssh tunnel."""
    host = form.host
    if not isinstance(host, SshHost):
        yield target.base_url
        return
    local = free_port()
    tunnel = SshHost(name=host.name, options=(*host.options, "-N"), forward=(local, target.port), client=host.client)
    argv = tunnel.command([], forward=True)
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield f"http://127.0.0.1:{local}"
    finally:
        process.terminate()
        process.wait()


def _switch_and_judge(
    form: Form, target: Target, base_url: str, log_path: Path, limits: TimeLimits, ui: Ui, run: _Run, canary: bool
) -> None:
    with run.timed(Stage.START, ui):
        form.switch()
    with _followed(form, log_path):
        log = LogWatch(log_path)
        asyncio.run(_judge(form, target, base_url, log, limits, ui, run, canary))


@contextlib.contextmanager
def _followed(form: Form, path: Path) -> Iterator[None]:
    """Copies the service manager's log into ``path``, secrets hidden, while the body runs."""
    pump = subprocess.Popen(
        [sys.executable, "-m", "planner.launch.logpump", str(path)], stdin=subprocess.PIPE, start_new_session=True
    )
    assert pump.stdin is not None
    try:
        follower = subprocess.Popen(
            form.host.command(form.follow_argv()),
            stdin=subprocess.DEVNULL,
            stdout=pump.stdin,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    finally:
        pump.stdin.close()
    try:
        yield
    finally:
        follower.terminate()
        follower.wait()
        pump.wait(10.0)


async def _judge(
    form: Form, target: Target, base_url: str, log: LogWatch, limits: TimeLimits, ui: Ui, run: _Run, canary: bool
) -> None:
    async with ServerClient(base_url, api_key=target.api_key) as client:
        gate = Gate(target=target, client=client, server=_Managed(form), log=log, limits=limits, ui=ui)
        deadline = time.monotonic() + limits.ready_timeout_s
        spare_s = limits.ready_timeout_s + limits.health_call_s + 5.0
        late = JudgedError(Cause.NEVER_READY, f"not ready within {limits.ready_timeout_s:g} s")
        with run.timed(Stage.ALIVE, ui):
            await gate.guard(gate.wait_alive(deadline), timeout_s=spare_s, late=late)
        with run.timed(Stage.HEALTH, ui):
            await gate.guard(gate.wait_healthy(deadline), timeout_s=spare_s, late=late)
        with run.timed(Stage.SETTINGS, ui):
            run.mismatches, hidden = await gate.guard(gate.check_settings(), timeout_s=60.0, late=late)
            run.notes += hidden
        if canary:
            with run.timed(Stage.CANARY, ui):
                late = JudgedError(Cause.SLOW_ANSWER, f"the canary took more than {limits.canary_timeout_s:g} s")
                result = await gate.guard(gate.canary(), timeout_s=limits.canary_timeout_s, late=late)
                run.figures = result.figures


def _roll_back(
    form: Form, target: Target, before: Snapshot, base_url: str, run_dir: Path, limits: TimeLimits, ui: Ui, run: _Run
) -> None:
    """Puts the old form back and waits until it serves again, if it did before."""
    ui.say("the new configuration is not right: rolling back")
    try:
        form.restore(before)
        if not before.was_running:
            run.notes.append("rolled back: nothing ran before, nothing runs now")
            return
        asyncio.run(_serves_again(form, target, base_url, LogWatch(run_dir / "rollback.log"), limits, ui))
        run.notes.append("rolled back: the previous configuration serves again")
    except (PlannerError, JudgedError) as error:
        run.notes.append(f"ROLL-BACK FAILED, {form.name} needs a person: {redact(str(error))}")


async def _serves_again(form: Form, target: Target, base_url: str, log: LogWatch, limits: TimeLimits, ui: Ui) -> None:
    async with ServerClient(base_url, api_key=target.api_key) as client:
        gate = Gate(target=target, client=client, server=_Managed(form), log=log, limits=limits, ui=ui)
        deadline = time.monotonic() + limits.ready_timeout_s
        late = JudgedError(Cause.NEVER_READY, "the previous configuration does not serve")
        await gate.guard(gate.wait_alive(deadline), timeout_s=limits.ready_timeout_s + 10.0, late=late)
        await gate.guard(
            gate.wait_healthy(deadline), timeout_s=limits.ready_timeout_s + limits.health_call_s + 10.0, late=late
        )
