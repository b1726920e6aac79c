"""The process between the launcher and the server: it lives as long as somebody wants the server, and no longer.

It uses the standard library only, so that it starts in milliseconds and can be sent to another host as text
(``python3 -c SOURCE``). It is controlled by lines on standard input, reports events as JSON lines on standard output,
and the server writes to its standard error.

Standard input is the leash: when it closes without ``release`` (the launcher was killed, the ssh connection broke),
the server is stopped. The server runs in its own session and process group. The supervisor adopts orphans of the
server (``PR_SET_CHILD_SUBREAPER``), so a descendant that left the group is ended as well, by its process id. Should the
supervisor itself be killed, the kernel ends the server (``PR_SET_PDEATHSIG``).

Input: first line ``{"argv": [...], "env": {...} (added to its own), "cwd": str | null, "grace_s": float}``, then
``stop SECONDS``, ``kill`` or ``release``. Events: ``started`` (pid), ``failed`` (error), ``exited`` (code, signal),
``empty`` (killed).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

__all__ = ["main"]

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 10.0
"""A grace of at least this is shared: half for the server to end by itself, half for what is left."""
LEASH_GRACE_S = 5.0
"""Time between SIGTERM and SIGKILL when the leash is cut."""


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    """Runs in the server between fork and exec."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _emit(event: str, **fields: object) -> None:
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps({"event": event, **fields}) + "\n").encode())


def _parents() -> dict[int, tuple[int, str]]:
    """pid -> (parent pid, state) of every process that can be seen."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
                try:
                    fields = os.read(fd, 4096).decode("utf-8", "replace").rpartition(")")[2].split()
                finally:
                    os.close(fd)
                found[int(name)] = (int(fields[1]), fields[0])
    return found


def _descendants() -> list[int]:
    """Living processes below this one, by parent links, children before grandchildren."""
    parents = _parents()
    found, ring = [], [os.getpid()]
    while ring:
        ring = [pid for pid, (parent, _) in parents.items() if parent in ring and pid not in found]
        found += ring
    return [pid for pid in found if parents[pid][1] != "Z"]


def _signal_all(group: int, number: int) -> int:
    """Sends a signal to the group and to every descendant outside of it. Returns how many were alive."""
    alive = _descendants()
    with contextlib.suppress(OSError):
        os.killpg(group, number)
    for pid in alive:
        with contextlib.suppress(OSError):
            if os.getpgid(pid) != group:
                os.kill(pid, number)
    return len(alive)


class _Supervisor:
    def __init__(self, spec: dict[str, object]) -> None:
        self.spec = spec
        self.server: subprocess.Popen[bytes] | None = None
        self.reported = False
        self.released = False
        self.leash: int | None = 0
        self.buffer = b""
        self.deadline: float | None = None
        """When SIGKILL follows; None: nobody asked to stop."""
        self.all_at: float | None = 0.0
        """When everything gets SIGTERM; None: it has."""
        self.n_killed = 0

    def start(self) -> bool:
        env = self.spec.get("env")
        try:
            self.server = subprocess.Popen(
                list(self.spec["argv"]),  # type: ignore[call-overload]
                env={**os.environ, **dict(env or {})},  # type: ignore[call-overload]
                cwd=self.spec.get("cwd"),
                stdin=subprocess.DEVNULL,
                stdout=2,
                stderr=2,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            _emit("failed", error=str(error))
            return False
        _emit("started", pid=self.server.pid, supervisor=os.getpid())
        return True

    def stop(self, grace_s: float) -> None:
        """SIGTERM to the server, after half of the grace to all that is left, then SIGKILL.

        The server gets its signal alone first: it drains its requests and ends its own workers, which a signal to the
        whole group would kill under it. A short grace goes to all at once; a shorter grace replaces a longer one.
        """
        assert self.server is not None
        now = time.monotonic()
        if self.deadline is None:
            self.deadline = now + grace_s
            if grace_s >= PATIENCE_S and self.server.returncode is None:
                os.kill(self.server.pid, signal.SIGTERM)
                self.all_at = now + grace_s / 2
        if now + grace_s < self.deadline:
            self.deadline, self.all_at = now + grace_s, now

    def read_orders(self, timeout_s: float) -> None:
        if self.leash is None:
            time.sleep(timeout_s)
            return
        ready, _, _ = select.select([self.leash], [], [], timeout_s)
        if not ready:
            return
        chunk = os.read(self.leash, 4096)
        if not chunk:
            self.leash = None
            if not self.released:
                self.stop(LEASH_GRACE_S)
            return
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        for line in lines:
            self.obey(line.decode().split())

    def obey(self, words: list[str]) -> None:
        if words[:1] == ["stop"]:
            self.stop(float(words[1]))
        elif words[:1] == ["kill"]:
            self.stop(0.0)
        elif words[:1] == ["release"]:
            self.released = True

    def reap(self) -> None:
        """Collects the server and adopted orphans."""
        assert self.server is not None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.server.pid:
                number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
                code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
                self.server.returncode = code if code is not None else -(number or 0)
                self.reported = True
                _emit("exited", code=code, signal=number)
                # What the server left behind gets a moment to end by itself, then the signals.
                self.stop(1.0 if self.deadline is None else max(0.0, self.deadline - time.monotonic()))

    def run(self) -> int:
        assert self.server is not None
        while True:
            self.read_orders(0.02 if self.deadline is not None else 0.1)
            self.reap()
            if self.deadline is None:
                continue
            if self.all_at is not None and time.monotonic() >= self.all_at:
                self.all_at = None
                _signal_all(self.server.pid, signal.SIGTERM)
            alive = len(_descendants())
            if alive == 0 and self.reported:
                _emit("empty", killed=self.n_killed)
                return 0
            if time.monotonic() >= self.deadline:
                self.n_killed = max(self.n_killed, _signal_all(self.server.pid, signal.SIGKILL))


def main() -> int:
    """Reads the order, runs the server until it ends or must end. Returns the exit code."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return 1
        line += byte
    supervisor = _Supervisor(json.loads(line))
    # SIGTERM is how a server that was handed over is stopped later.
    grace_s = float(supervisor.spec.get("grace_s") or 30.0)  # type: ignore[arg-type]
    if not supervisor.start():
        return 1
    signal.signal(signal.SIGTERM, lambda *_: supervisor.stop(grace_s))
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
