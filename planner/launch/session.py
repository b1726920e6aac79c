"""One launch from preflight to report. Whatever happens: the server is ended or handed over, the report is whole."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TypeVar

from planner.diagnose import redact, redact_argv
from planner.domain import Observation, Outcome
from planner.errors import PlannerError
from planner.launch.client import ServerClient
from planner.launch.devices import driver_of
from planner.launch.gate import Gate, TimeLimits
from planner.launch.host import Host, HostLostError, LocalHost, SshHost
from planner.launch.logwatch import LogWatch, digest
from planner.launch.preflight import Engine, check_disk, preflight
from planner.launch.process import ServerProcess
from planner.launch.progress import Ui
from planner.launch.records import Identity, new_observation
from planner.launch.target import Target
from planner.launch.verdict import Cause, JudgedError, LaunchReport, Mismatch, Stage, StageReport
from planner.launch.writing import keep_old, write_atomically

__all__ = ["Interrupted", "Measure", "Order", "Session", "Then", "free_port", "interruptible", "run_launch"]

_T = TypeVar("_T")


class Then(StrEnum):
    """What happens to a server that is right."""

    STAY = "stay"
    """It serves until this program is stopped."""
    STOP = "stop"
    HAND_OVER = "hand-over"
    """It serves on; its supervisor watches it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


Measure = Callable[["Session"], Awaitable[tuple[Observation, ...]]]
"""A measurement of a server that is right: benchmark, soak. Raises JudgedError when the server fails under it."""


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that a launch needs to know."""

    target: Target
    run_dir: Path
    host: Host = field(default_factory=LocalHost)
    limits: TimeLimits = field(default_factory=TimeLimits)
    then: Then = Then.STOP
    strict_settings: bool = True
    canary: bool = True
    measures: tuple[tuple[Stage, Measure], ...] = ()
    record: Callable[[tuple[Observation, ...]], None] | None = None
    """Writes observations; raises PlannerError when it cannot."""
    cwd: str | None = None
    identity: Identity = field(default_factory=Identity)


class Session:
    """State of one launch. Measures read ``gate``, ``engine`` and ``log``."""

    def __init__(self, order: Order, ui: Ui) -> None:
        self.order = order
        self.ui = ui
        self.log = LogWatch(order.run_dir / "server.log")
        self.engine: Engine | None = None
        self.gate: Gate | None = None
        self.server: ServerProcess | None = None
        self.stages: list[StageReport] = []
        self.stage = Stage.PREFLIGHT
        self.mismatches: tuple[Mismatch, ...] = ()
        self.figures: dict[str, float] = {}
        self.notes: list[str] = []
        self.observations: list[Observation] = []
        self._stopping = False
        """A signal came, or the end has begun: further signals only hurry it."""
        host = order.host
        self.base_url = order.target.base_url
        if isinstance(host, SshHost) and host.forward is not None:
            self.base_url = f"http://127.0.0.1:{host.forward[0]}"

    # -- signals -----------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal interrupts the work; one during the stop shortens it to a kill."""

        def again() -> bool:
            if not self._stopping:
                self._stopping = True
                return False
            if self.server is not None:
                self.server.kill()
            return True

        with interruptible(again):
            yield

    # -- the launch --------------------------------------------------------------------------------------------------
    def run(self) -> LaunchReport:
        """Everything, in order.

        Raises:
            InputError: found before anything was started; nothing was changed.
            HostLostError: the host could not be reached before anything was started.
        """
        judged = JudgedError(Cause.INTERRUPTED, "")
        with self._signals():
            try:
                self._work()
                judged = JudgedError(Cause.OK, "")
            except JudgedError as error:
                judged = error
            except HostLostError as error:
                if self.server is None:
                    self._undo()
                    raise
                judged = JudgedError(Cause.HOST_LOST, str(error))
            except PlannerError:
                self._undo()
                raise
            except Interrupted as error:
                judged = JudgedError(Cause.INTERRUPTED, str(error))
                if self.gate is not None and self.gate.ready and self.stage is Stage.SERVE:
                    judged = JudgedError(Cause.OK, f"stopped by {error}")
            finally:
                self._stopping = True
                serving = self._end(judged)
            judged = self._save(judged)
            report = self._report(judged, serving=serving)
            with contextlib.suppress(OSError):
                write_atomically(self.order.run_dir / "report.json", report.model_dump_json(indent=1) + "\n")
        return report

    def _work(self) -> None:
        order = self.order
        order.run_dir.mkdir(parents=True, exist_ok=True)
        check_disk(str(order.run_dir))
        keep_old(self.log.path)
        with self._timed(Stage.PREFLIGHT):
            self.engine = preflight(order.target, order.host, folder=order.run_dir)
        with self._timed(Stage.START):
            self.server = ServerProcess.start(
                order.target.argv,
                env=dict(order.target.env),
                log=self.log.path,
                host=order.host,
                cwd=order.cwd,
                python=order.target.python,
                grace_s=order.limits.stop_grace_s,
            )
        self._note_process()
        asyncio.run(self._judge())

    def _undo(self) -> None:
        """Bad input changes nothing: the run directory goes, if it is empty."""
        with contextlib.suppress(OSError):
            self.order.run_dir.rmdir()

    def _note_process(self) -> None:
        """Leaves the process ids in the run directory, for whoever must stop a server that was handed over."""
        assert self.server is not None
        record = {
            "supervisor_pid": self.server.supervisor_pid,
            "server_pid": self.server.pid,
            "host": self.order.host.name,
            "base_url": self.base_url,
            "argv": redact_argv(self.order.target.argv),
            "supervisor_started": _start_time(self.server.supervisor_pid),
        }
        write_atomically(self.order.run_dir / "process.json", json.dumps(record, indent=1) + "\n")

    async def _judge(self) -> None:
        order, limits = self.order, self.order.limits
        assert self.server is not None
        async with ServerClient(self.base_url, api_key=order.target.api_key) as client:
            gate = Gate(target=order.target, client=client, server=self.server, log=self.log, limits=limits, ui=self.ui)
            self.gate = gate
            deadline = time.monotonic() + limits.ready_timeout_s
            spare_s = limits.health_call_s + 5.0
            late = JudgedError(Cause.NEVER_READY, f"not ready within {limits.ready_timeout_s:g} s")
            with self._timed(Stage.ALIVE):
                await gate.guard(gate.wait_alive(deadline), timeout_s=limits.ready_timeout_s + spare_s, late=late)
            with self._timed(Stage.HEALTH):
                await gate.guard(gate.wait_healthy(deadline), timeout_s=limits.ready_timeout_s + spare_s, late=late)
            with self._timed(Stage.SETTINGS):
                late = JudgedError(Cause.REQUEST_REFUSED, "/server_info did not answer in time")
                self.mismatches, hidden = await gate.guard(
                    gate.check_settings(strict=order.strict_settings), timeout_s=60.0, late=late
                )
                self.notes += hidden
            if order.canary:
                with self._timed(Stage.CANARY):
                    late = JudgedError(Cause.SLOW_ANSWER, f"the canary took more than {limits.canary_timeout_s:g} s")
                    result = await gate.guard(gate.canary(), timeout_s=limits.canary_timeout_s, late=late)
                    self.figures = result.figures
                    self.notes += result.notes
            for stage, measure in order.measures:
                with self._timed(stage):
                    self.observations += await measure(self)
            self.stage = Stage.SERVE
            if order.then is Then.STAY:
                self.ui.say(f"serving and right at {self.base_url}; Ctrl-C stops it")
                await self._serve()

    async def _serve(self) -> None:
        """Until interrupted, or until the server fails."""
        assert self.gate is not None
        while True:
            self.gate.look()
            await asyncio.sleep(self.order.limits.poll_s)

    @contextlib.contextmanager
    def _timed(self, stage: Stage) -> Iterator[None]:
        self.stage = stage
        start = time.monotonic()
        self.ui.step(stage.value)
        try:
            yield
        except BaseException as error:
            self.stages.append(StageReport(stage=stage, ok=False, took_s=_took(start), note=redact(str(error))[:300]))
            raise
        self.stages.append(StageReport(stage=stage, ok=True, took_s=_took(start)))
        self.ui.say(f"{stage.value}: ok ({_took(start):.1f} s)")

    # -- the end -----------------------------------------------------------------------------------------------------
    def _end(self, judged: JudgedError) -> bool:
        """Stops the server, or hands it over. Returns whether it serves on."""
        if self.server is None:
            return False
        if judged.cause == Cause.OK and self.order.then is Then.HAND_OVER:
            self.server.release()
            return True
        start = time.monotonic()
        grace_s = self.order.limits.stop_grace_s if judged.cause == Cause.OK else 5.0
        self.ui.step("stopping")
        ending = self.server.stop(grace_s)
        self.log.read()
        note = f"{ending.n_killed} processes had to be killed" if ending.n_killed else ""
        self.stages.append(StageReport(stage=Stage.STOP, ok=self.server.empty, took_s=_took(start), note=note))
        return False

    def _save(self, judged: JudgedError) -> JudgedError:
        """Records the observations. A ledger that cannot be written costs the verdict, not the data."""
        if self.server is None or judged.cause == Cause.INTERRUPTED:
            return judged
        if judged.cause != Cause.OK or not self.observations:
            # A launch that failed, and one that was right and not measured, are evidence as well.
            self.observations.append(self._launch_observation(judged))
        log_digest = None if self.server.released else digest(self.log.path)
        self.observations = [observation.replace(log_digest=log_digest) for observation in self.observations]
        observations = tuple(self.observations)
        lines = "".join(observation.model_dump_json() + "\n" for observation in observations)
        kept = self.order.run_dir / "observations.jsonl"
        write_atomically(kept, lines)
        if self.order.record is None:
            return judged
        try:
            self.order.record(observations)
        except PlannerError as error:
            text = f"{error}; the observations are kept in {kept}: `plan-config ledger import LEDGER {kept}`"
            if judged.cause == Cause.OK:
                return JudgedError(Cause.LEDGER_LOCKED, text, stage=Stage.STOP)
            self.notes.append(text)
        return judged

    def _launch_observation(self, judged: JudgedError) -> Observation:
        checked = self.gate is not None and self.gate.info is not None and not self.mismatches
        return new_observation(
            self.order.identity,
            target=self.order.target,
            engine_version=self.engine.version if self.engine else None,
            outcome=Outcome(cause=judged.cause, detail=redact(judged.detail) or None),
            candidate=self.order.target.expected if checked or judged.cause != Cause.WRONG_SETTINGS else None,
            info=self.gate.info if self.gate else None,
            driver=driver_of(self.order.host) if judged.cause != Cause.HOST_LOST else None,
        )

    def _report(self, judged: JudgedError, *, serving: bool) -> LaunchReport:
        diagnosis = None if self.log.empty else self.log.diagnosis()
        shown = diagnosis is not None and judged.cause not in (Cause.OK, Cause.INTERRUPTED)
        remote = not isinstance(self.order.host, LocalHost)
        gone = self.server is None or self.server.empty or serving
        return LaunchReport(
            ok=judged.cause == Cause.OK,
            cause=judged.cause,
            detail=redact(judged.detail),
            stage=judged.stage or self.stage,
            stages=tuple(self.stages),
            base_url=self.base_url,
            argv=redact_argv(self.order.target.argv),
            pid=self.server.pid if self.server else None,
            log=str(self.log.path) if self.log.path.exists() else None,
            log_digest=None if serving else digest(self.log.path),
            engine_version=self.engine.version if self.engine else None,
            mismatches=self.mismatches,
            canary=tuple(self.figures.items()),
            diagnosis_cause=diagnosis.cause if shown and diagnosis else None,
            diagnosis_lines=tuple(line.text for line in diagnosis.lines) if shown and diagnosis else (),
            remedies=diagnosis.remedies if shown and diagnosis and diagnosis.cause == judged.cause else (),
            observations=tuple(self.observations),
            notes=tuple(self.notes),
            serving=serving,
            left_behind=0 if gone or remote else 1,
        )


@contextlib.contextmanager
def interruptible(swallow: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise :class:`Interrupted` in the body, unless ``swallow`` takes them."""

    def handle(number: int, _: FrameType | None) -> None:
        if not swallow():
            raise Interrupted(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        before = {number: signal.signal(number, handle) for number in numbers}
    except ValueError:
        # Not the main thread: whoever owns the process owns its signals.
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_launch(order: Order, ui: Ui) -> LaunchReport:
    """Runs a launch and closes the progress display."""
    try:
        return Session(order, ui).run()
    finally:
        ui.close()


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _took(start: float) -> float:
    return round(time.monotonic() - start, 3)


def _start_time(pid: int | None) -> int | None:
    """Start of a process in clock ticks since boot (proc(5), field 22): tells a reused process id from the old one."""
    if pid is None or not os.path.exists(f"/proc/{pid}/stat"):
        return None
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return int(stat.read().rpartition(")")[2].split()[19])
