"""One server process and its supervisor: start, poll, stop, release."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from planner.launch import supervisor
from planner.launch.host import Host, LocalHost

__all__ = ["Ending", "ServerProcess"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How the server ended. ``code`` and ``signal`` are None when that is not known (the connection was lost)."""

    code: int | None = None
    signal: int | None = None
    error: str | None = None
    """Why it could not be started at all."""
    lost: bool = False
    """The supervisor, or the connection to it, went before it could tell."""
    remote: bool = False
    n_killed: int = 0
    """Processes that ignored SIGTERM and were killed."""

    def __str__(self) -> str:
        if self.error:
            return f"could not be started: {self.error}"
        if self.lost:
            return "the connection to its host broke" if self.remote else "its supervisor was killed"
        return f"ended by signal {self.signal}" if self.signal else f"exited with code {self.code}"


class ServerProcess:
    """A running server. Use as a context manager: leaving it stops the server unless it was released."""

    def __init__(self, process: subprocess.Popen[bytes], pump: subprocess.Popen[bytes], *, remote: bool) -> None:
        self._process = process
        self._pump = pump
        self._remote = remote
        self._buffer = b""
        self._closed = False
        self._log_fault: str | None = None
        self.pid: int | None = None
        """Process id of the server on its host; also its process group."""
        self.supervisor_pid: int | None = None
        self.ending: Ending | None = None
        self.empty = False
        """Proved: nothing of the server is left."""
        self.released = False

    @property
    def log_fault(self) -> str | None:
        """Why the log cannot be written; None: it can."""
        stream = self._pump.stdout
        if self._log_fault is None and stream is not None and not stream.closed:
            ready, _, _ = select.select([stream], [], [], 0)
            if ready and (text := os.read(stream.fileno(), 4096)):
                self._log_fault = text.decode("utf-8", "replace").splitlines()[0]
        return self._log_fault

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        log: Path,
        host: Host | None = None,
        cwd: str | None = None,
        python: str | None = None,
        grace_s: float = 30.0,
        start_timeout_s: float = 30.0,
    ) -> Self:
        """Starts the supervisor and the server. ``env`` is added to the environment of the host.

        ``python`` runs the supervisor on another host: the server's own interpreter there.
        """
        machine: Host = host or LocalHost()
        remote = not isinstance(machine, LocalHost)
        pump = subprocess.Popen(
            [sys.executable, "-m", "planner.launch.logpump", str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        assert pump.stdin is not None
        if remote:
            command = [python or "python3", "-c", inspect.getsource(supervisor)]
        else:
            command = [sys.executable, "-I", "-S", str(Path(supervisor.__file__))]
        try:
            process = machine.spawn(command, stderr=pump.stdin.fileno())
        finally:
            pump.stdin.close()
        server = cls(process, pump, remote=remote)
        spec = {"argv": list(argv), "env": dict(env or {}), "cwd": cwd, "grace_s": grace_s}
        server._order(json.dumps(spec))
        deadline = time.monotonic() + start_timeout_s
        try:
            while server.pid is None and server.ending is None and time.monotonic() < deadline:
                server.poll(wait_s=0.1)
        except BaseException:
            server.stop(0.0)
            raise
        if server.pid is None and server.ending is None:
            server.stop(0.0)
            server.ending = Ending(error=f"no answer from {machine.name} within {start_timeout_s:g} s", lost=remote)
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.released:
            self.stop(5.0)

    def poll(self, *, wait_s: float = 0.0) -> Ending | None:
        """Reads the supervisor's events, waiting at most ``wait_s``. Returns how the server ended, or None."""
        stream = self._process.stdout
        assert stream is not None
        while not self._closed and not stream.closed:
            ready, _, _ = select.select([stream], [], [], wait_s)
            if not ready:
                break
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                self._closed = True
                code = self._process.wait()
                if self.ending is None:
                    self.ending = Ending(lost=True, remote=self._remote, code=code)
                break
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
            wait_s = 0.0
        return self.ending

    def _take(self, event: dict[str, object]) -> None:
        match event["event"]:
            case "started":
                self.pid, self.supervisor_pid = int(str(event["pid"])), int(str(event["supervisor"]))
            case "failed":
                self.ending = Ending(error=str(event["error"]))
                self.empty = True
            case "exited":
                code, number = event["code"], event["signal"]
                self.ending = Ending(
                    code=code if isinstance(code, int) else None, signal=number if isinstance(number, int) else None
                )
            case "empty":
                self.empty = True
                if self.ending is not None:
                    killed = event["killed"]
                    self.ending = Ending(
                        code=self.ending.code,
                        signal=self.ending.signal,
                        n_killed=killed if isinstance(killed, int) else 0,
                    )

    def _order(self, line: str) -> None:
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return
        with contextlib.suppress(OSError):
            view = memoryview((line + "\n").encode())
            while view:
                view = view[os.write(self._process.stdin.fileno(), view) :]

    def stop(self, grace_s: float = 30.0) -> Ending:
        """Ends the server and everything it started; returns when the supervisor has seen that nothing is left."""
        self._order(f"stop {grace_s}")
        deadline = time.monotonic() + grace_s + 15.0
        while not self._closed and time.monotonic() < deadline:
            self.poll(wait_s=0.2)
        if not self._closed:
            # The supervisor does not answer: cut the leash, then end it; the kernel ends the server with it.
            self._close_leash()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
        self._close_leash()
        self._finish()
        return self.ending or Ending(lost=True)

    def kill(self) -> None:
        """Shortens a stop that is under way: SIGKILL now."""
        self._order("kill")

    def release(self) -> None:
        """Hands the server over: it keeps running under its supervisor when this process ends.

        Raises:
            ValueError: the server runs over ssh, where the connection is its leash.
        """
        if self._remote:
            raise ValueError("a server started over ssh ends with its connection; use a unit or a container there")
        self._order("release")
        self.released = True
        self._close_leash()
        for process in (self._process, self._pump):
            # They outlive this process on purpose; their parent becomes init.
            process.returncode = 0
            if process.stdout is not None:
                process.stdout.close()

    def _close_leash(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def drain(self, timeout_s: float = 10.0) -> None:
        """After the server ended: waits until its log is written to its end."""
        deadline = time.monotonic() + timeout_s
        while not self._closed and time.monotonic() < deadline:
            self.poll(wait_s=0.2)
        if self._closed:
            self._close_leash()
            self._finish()

    def _finish(self) -> None:
        """Waits for the log to be written to its end."""
        if self._process.stdout is not None and self._process.stdout.closed:
            return
        if self._process.stdout is not None:
            self._process.stdout.close()
        try:
            self._pump.wait(10.0)
        except subprocess.TimeoutExpired:
            self._pump.kill()
            self._pump.wait()
        _ = self.log_fault
        if self._pump.stdout is not None:
            self._pump.stdout.close()
