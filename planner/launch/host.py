"""Where a launch runs: this machine, or another one over ssh. Commands are lists of arguments; no shell line is built
by hand. ssh joins its arguments into one line for the remote shell, so that line is made by ``shlex.join``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from planner.errors import PlannerError

__all__ = ["Completed", "Host", "HostLostError", "LocalHost", "SshHost", "run_async", "with_env"]

SSH_FAILED = 255
"""Exit code with which ssh reports its own failure (ssh(1))."""


class HostLostError(PlannerError):
    """The host cannot be reached, or the connection broke."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended. ``code`` is None when it ran past its time limit and was killed."""

    code: int | None
    stdout: str
    stderr: str


class Host(Protocol):
    """What the launcher needs from a machine."""

    @property
    def name(self) -> str:
        """How messages call it."""
        ...

    def command(self, argv: Sequence[str], *, forward: bool = False) -> list[str]:
        """The local argv that runs ``argv`` on the machine."""
        ...

    def run(
        self, argv: Sequence[str], *, timeout_s: float, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Completed:
        """Runs a command to its end. ``env`` is added to the environment.

        Raises:
            HostLostError: the host cannot be reached.
        """
        ...

    def spawn(self, argv: Sequence[str], *, stderr: IO[bytes] | int) -> subprocess.Popen[bytes]:
        """Starts a command with pipes for standard input and output, in its own session."""
        ...


def with_env(argv: Sequence[str], env: Mapping[str, str] | None) -> list[str]:
    """``argv`` with variables set by ``env(1)``: sshd drops variables that it does not know."""
    return ["env", *(f"{key}={value}" for key, value in env.items()), *argv] if env else list(argv)


async def run_async(
    host: Host, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
) -> Completed:
    """As :meth:`Host.run`, for work that is watched meanwhile: cancelling it ends the command and what it started."""
    process = await asyncio.create_subprocess_exec(
        *host.command(with_env(argv, env)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    late = False
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await process.communicate()
    except TimeoutError:
        late, stdout, stderr = True, b"", b""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return Completed(
        None if late else process.returncode, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")
    )


def _run(argv: Sequence[str], timeout_s: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=None if env is None else {**os.environ, **env},
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end_group(process)
        stdout, stderr = process.communicate()
        return Completed(None, stdout, stderr)
    except BaseException:
        _end_group(process)
        process.communicate()
        raise
    return Completed(process.returncode, stdout, stderr)


def _end_group(process: subprocess.Popen[str]) -> None:
    """Kills the command and what it started (its own session, so its own group)."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return


@dataclass(frozen=True, slots=True)
class LocalHost:
    """This machine."""

    name: str = "localhost"

    def command(self, argv: Sequence[str], *, forward: bool = False) -> list[str]:
        """``argv`` itself."""
        return list(argv)

    def run(
        self, argv: Sequence[str], *, timeout_s: float, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Completed:
        """Runs a command here.

        Raises:
            FileNotFoundError: there is no such program.
        """
        return _run(argv, timeout_s, stdin, env)

    def spawn(self, argv: Sequence[str], *, stderr: IO[bytes] | int) -> subprocess.Popen[bytes]:
        """Starts a command here."""
        return subprocess.Popen(
            list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True, bufsize=0
        )


@dataclass(frozen=True, slots=True)
class SshHost:
    """Another machine, reached by the ``ssh`` client with the user's own configuration; never asks for a password."""

    name: str
    """Destination as ssh takes it: ``user@host`` or an alias."""
    options: tuple[str, ...] = ()
    forward: tuple[int, int] | None = None
    """``(local port, remote port)`` on the loopback of both ends, for the connection that :meth:`spawn` opens."""
    client: str = "ssh"

    def command(self, argv: Sequence[str], *, forward: bool = False) -> list[str]:
        """The local argv that runs ``argv`` on the host."""
        extra: list[str] = []
        if forward and self.forward is not None:
            local, remote = self.forward
            extra = ["-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{local}:127.0.0.1:{remote}"]
        alive = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
        alive += ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]
        return [self.client, *alive, *self.options, *extra, "-T", "--", self.name, shlex.join(argv)]

    def run(
        self, argv: Sequence[str], *, timeout_s: float, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Completed:
        """Runs a command there; ``env`` is set by ``env(1)``, since sshd drops what it does not know.

        Raises:
            HostLostError: ssh is not installed, or exited with 255.
        """
        if shutil.which(self.client) is None:
            raise HostLostError("there is no ssh client on this machine", "install openssh-client")
        done = _run(self.command(with_env(argv, env)), timeout_s, stdin, None)
        if done.code == SSH_FAILED:
            last = done.stderr.strip().splitlines()[-1:] or ["no message"]
            raise HostLostError(
                f"ssh to {self.name} failed: {last[0]}",
                f"try `ssh {shlex.quote(self.name)} true`; keys and host keys must work without a question",
            )
        return done

    def spawn(self, argv: Sequence[str], *, stderr: IO[bytes] | int) -> subprocess.Popen[bytes]:
        """Starts a command there; the connection is its leash."""
        return subprocess.Popen(
            self.command(argv, forward=True),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
        )
