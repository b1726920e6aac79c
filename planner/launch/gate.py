"""The stages between "process started" and "serving and right": alive, healthy, settings, canary."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from planner.diagnose import LogFacts, Phase
from planner.launch.canary import CanaryPlan, CanaryResult, run_canary
from planner.launch.client import CallError, CallFault, ServerClient
from planner.launch.logwatch import LogWatch
from planner.launch.process import Ending
from planner.launch.progress import Ui, step_of
from planner.launch.settings import changed_arguments, compare_settings, effective_running, graph_batches
from planner.launch.target import Target
from planner.launch.verdict import Cause, JudgedError, Mismatch, Stage

__all__ = ["Gate", "TimeLimits", "Watched"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long each thing may take. Defaults are for large models."""

    ready_timeout_s: float = 1800.0
    """From the start to the first healthy answer. On record: 6 minutes of weights (FN-19), plus compiled kernels."""
    health_call_s: float = 25.0
    """/health_generate answers within SGLANG_HEALTH_CHECK_TIMEOUT (20 s) or not at all."""
    call_timeout_s: float = 120.0
    """One generation of the canary."""
    canary_timeout_s: float = 900.0
    stop_grace_s: float = 30.0
    crash_grace_s: float = 4.0
    """From the first crash mark in the log to its judgement: the traceback is still being printed."""
    poll_s: float = 0.25


class Watched(Protocol):
    """What the gate needs to know of a running server: a process of ours, a unit, a container."""

    @property
    def log_fault(self) -> str | None:
        """Why its log cannot be kept."""
        ...

    def poll(self, *, wait_s: float = 0.0) -> Ending | None:
        """How it ended, or None."""
        ...

    def drain(self) -> None:
        """After its end: waits until its log is complete."""
        ...


@dataclass(slots=True)
class Gate:
    """Judges one server."""

    target: Target
    client: ServerClient
    server: Watched
    log: LogWatch
    limits: TimeLimits
    ui: Ui
    ready: bool = False
    info: Mapping[str, Any] | None = None
    """/server_info, once read."""

    # -- watching ----------------------------------------------------------------------------------------------------
    def look(self) -> None:
        """Takes in the log and the state of the process.

        Raises:
            JudgedError: the server ended, crashed, or its log is being lost.
        """
        ending = self.server.poll()
        self.log.read()
        if not self.ready and (step := step_of(self.log.last_lines)):
            self.ui.step(*step)
        if ending is not None:
            self.server.drain()
            self.log.read()
            raise self.ended(ending)
        if self.log.crashed_at is not None and time.monotonic() - self.log.crashed_at > self.limits.crash_grace_s:
            raise JudgedError(*self.cause_of_death("its scheduler died"))
        if (fault := self.server.log_fault) is not None:
            full = "No space" in fault or "quota" in fault
            raise JudgedError(
                Cause.DISK_FULL if full else Cause.LOG_LOST, f"{self.log.path} cannot be written: {fault}"
            )

    def ended(self, ending: Ending) -> JudgedError:
        """The judgement on a server that is gone."""
        if ending.error is not None:
            return JudgedError(Cause.START_FAILED, ending.error)
        if ending.lost and ending.remote:
            return JudgedError(Cause.HOST_LOST, "the connection to the server's host broke; the server ends with it")
        if ending.lost:
            return JudgedError(Cause.SUPERVISOR_LOST, "its supervisor was killed; the kernel ended the server with it")
        return JudgedError(*self.cause_of_death(str(ending)))

    def cause_of_death(self, how: str) -> tuple[str, str]:
        """(cause, detail) from the log, or a plain statement when the log does not say."""
        if not self.log.empty:
            diagnosis = self.log.diagnosis()
            if diagnosis.cause not in ("healthy", "unknown"):
                lines = [line.text.strip() for line in diagnosis.lines]
                telling = [line for line in lines if "Traceback" not in line] or lines or [diagnosis.title]
                shown = telling[0][:300]
                return diagnosis.cause, f"{how}; {diagnosis.title}: {shown}"
        cause = Cause.DIED_SERVING if self.ready else Cause.EXITED
        if self.log.last_error:
            return str(cause), f"{how}; last error: {self.log.last_error}"
        return str(cause), f"{how}; last line: {self.log.last_line.strip()[:300] or 'none'}"

    async def guard(self, work: Coroutine[Any, Any, _T], *, timeout_s: float, late: JudgedError) -> _T:
        """Runs ``work`` while the server is watched; the first judgement wins.

        Raises:
            JudgedError: from the work, from watching, or ``late`` when the time is over.
        """
        task = asyncio.ensure_future(work)
        deadline = time.monotonic() + timeout_s
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self.limits.poll_s)
                try:
                    self.look()
                except JudgedError:
                    if task.done() and task.exception() is None:
                        break
                    raise
                if time.monotonic() > deadline and not task.done():
                    raise late
            try:
                result = await task
            except JudgedError:
                # A broken connection is often the first sign of a death that the process table shows a moment later.
                await self._settle(1.0)
                raise
            # Right answers do not help a scheduler that has died since.
            self.look()
            await self._settle(0.0)
            return result
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, JudgedError, CallError):
                    await task

    async def _settle(self, least_s: float) -> None:
        """Watches for ``least_s`` seconds, or for as long as a crash that has begun needs to show itself.

        Raises:
            JudgedError: the server is dead.
        """
        until = time.monotonic() + least_s
        while time.monotonic() < until or self.log.crashed_at is not None:
            await asyncio.sleep(self.limits.poll_s)
            self.look()

    # -- stages ------------------------------------------------------------------------------------------------------
    async def wait_alive(self, deadline: float) -> str:
        """Waits for the first answer to anything."""
        while True:
            try:
                self.look()
                await self.client.call("GET", "/model_info", deadline_s=5.0)
                return ""
            except CallError as error:
                if error.fault is CallFault.STATUS:
                    return ""
                self._not_later_than(deadline, f"no answer at {self.client.base_url}: {error.detail}")
            await asyncio.sleep(self.limits.poll_s)

    async def wait_healthy(self, deadline: float) -> str:
        """Waits until the server generates one token for its own health check."""
        n_silent = 0
        while True:
            try:
                self.look()
                remaining = max(1.0, deadline - time.monotonic())
                await self.client.call("GET", "/health_generate", deadline_s=min(self.limits.health_call_s, remaining))
                self.ready = True
                return f"after {self.client.n_503} answers of 503" if self.client.n_503 else ""
            except CallError as error:
                n_silent = n_silent + 1 if error.fault in (CallFault.SILENT, CallFault.SLOW) else 0
                if n_silent >= 2 and self.log.facts().phase.rank >= Phase.READY.rank:
                    raise JudgedError(
                        Cause.HANG_GENERATION, f"says ready but does not generate: {error.detail}"
                    ) from None
                self._not_later_than(deadline, error.detail, error)
            await asyncio.sleep(self.limits.poll_s)

    def _not_later_than(self, deadline: float, detail: str, error: CallError | None = None) -> None:
        if time.monotonic() < deadline:
            return
        phase = self.log.facts().phase.value
        text = f"not ready within {self.limits.ready_timeout_s:g} s, last seen in phase {phase}; {detail}"
        if error is not None and error.fault is CallFault.STATUS and error.status == 503:
            raise JudgedError(Cause.UNHEALTHY, f"{text}; {self.client.n_503} answers of 503")
        if error is not None and error.fault is CallFault.UNREADABLE:
            raise JudgedError(Cause.BAD_ANSWER, text)
        diagnosis = None if self.log.empty else self.log.diagnosis()
        if diagnosis is not None and diagnosis.cause not in ("healthy", "unknown"):
            raise JudgedError(diagnosis.cause, text)
        raise JudgedError(Cause.NEVER_READY, text)

    async def check_settings(self, *, strict: bool = True) -> tuple[tuple[Mismatch, ...], tuple[str, ...]]:
        """Reads /server_info and compares it with the plan; for a plain argv with what was asked.

        Raises:
            JudgedError: a setting of the plan is not in force.
        """
        try:
            info = await self._server_info()
        except CallError as error:
            cause = Cause.BAD_ANSWER if error.fault is CallFault.UNREADABLE else Cause.REQUEST_REFUSED
            raise JudgedError(cause, error.detail, stage=Stage.SETTINGS) from None
        self.info = info
        facts = await self._complete_facts()
        if self.target.expected is None:
            from planner.engine.argv import read_argv

            asked = read_argv(self.target.arguments).launch
            changed = changed_arguments(asked, info)
            throttled = [item for item in changed if item.field == "max_running_requests"]
            if throttled and strict:
                raise JudgedError("throttled-max-running", _listed(throttled), stage=Stage.SETTINGS)
            return changed, ()
        wrong, hidden = compare_settings(self.target.expected, info, facts)
        if wrong and strict:
            throttled = [item for item in wrong if item.field == "max_running_requests"]
            less = throttled and int(throttled[0].actual) < int(throttled[0].expected)
            slug = "throttled-max-running" if less else str(Cause.WRONG_SETTINGS)
            raise JudgedError(slug, _listed(wrong), stage=Stage.SETTINGS)
        return wrong, tuple(f"the server does not show {name}" for name in hidden)

    async def _complete_facts(self) -> LogFacts:
        """Facts of the log once it tells that the server is ready: the log trails the server a little."""
        until = time.monotonic() + LOG_DELAY_S
        while (facts := self.log.facts()).phase.rank < Phase.READY.rank and time.monotonic() < until:
            await asyncio.sleep(self.limits.poll_s)
            self.look()
        return facts

    async def _server_info(self) -> dict[str, Any]:
        try:
            return await self.client.get_json("/server_info", deadline_s=30.0)
        except CallError as error:
            if error.status != 404:
                raise
            return await self.client.get_json("/get_server_info", deadline_s=30.0)

    def canary_plan(self) -> CanaryPlan:
        """What the canary asks of this server, from /server_info and the log."""
        info = self.info or {}
        facts = self.log.facts()
        running = effective_running(info) or facts.max_running_requests
        if running is None:
            running = self.target.expected.max_running_requests if self.target.expected else 8
        length = info.get("max_req_input_len")
        return CanaryPlan(
            full_batch=min(running, MAX_FULL_BATCH),
            graph_batches=graph_batches(info, facts) or (),
            speculating=info.get("speculative_algorithm") is not None,
            prefix_cache=not info.get("disable_radix_cache"),
            max_prompt_tok=int(length) if isinstance(length, int) else 4096,
            call_timeout_s=self.limits.call_timeout_s,
        )

    async def canary(self) -> CanaryResult:
        """Asks the questions.

        Raises:
            JudgedError: the server is not right.
        """
        return await run_canary(self.client, self.canary_plan(), self.ui.say)


MAX_FULL_BATCH = 1024
"""The canary's full batch is never larger: it is a check, not a load test."""
LOG_DELAY_S = 5.0
"""How long the log may trail the server's own answers."""


def _listed(items: tuple[Mismatch, ...] | list[Mismatch]) -> str:
    return "; ".join(f"{item.field} is {item.actual}, the launch asks for {item.expected}" for item in items)
