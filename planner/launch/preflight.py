"""What must hold before a server is started: an engine that takes the argv, a free port, disk and shared memory."""

from __future__ import annotations

import inspect
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import InputError, Problem
from planner.launch import probe
from planner.launch.host import Host, LocalHost
from planner.launch.target import Target
from planner.launch.verdict import Cause, JudgedError, Stage

__all__ = ["CLIENT_MODULES", "Engine", "check_disk", "look", "preflight", "refuse_engine"]

CLIENT_MODULES = ("sglang.benchmark.serving", "sglang.bench_serving")
"""SGLang's benchmark client, newest name first (0.5.23 has both, 0.5.12.post1 the second)."""
MIN_DISK_BYTES = 256 * 1024**2
"""Assumed need of logs and records; compiled kernels go where the engine's own caches are."""
MIN_SHM_BYTES = 64 * 1024**2
"""Docker's default /dev/shm; NCCL's transport fails below its need (`nccl-shm` in docs/diagnose.md)."""
MIN_SHM_PER_RANK_BYTES = 1024**3
"""Assumed need of one tensor-parallel rank when there is more than one."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What the host says about the engine."""

    python: str
    version: str | None
    client: str | None
    """Module of the benchmark client."""


def look(
    host: Host,
    python: str,
    *,
    arguments: Sequence[str] = (),
    address: tuple[str, int] | None = None,
    folders: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    parse: bool = True,
    prefix: Sequence[str] = (),
    timeout_s: float = 180.0,
) -> dict[str, Any]:
    """Runs the probe with ``python`` on the host and returns what it found.

    Raises:
        InputError: there is no such interpreter, or it does not answer.
        HostLostError: the host cannot be reached.
    """
    order = {
        "arguments": list(arguments),
        "host": address[0] if address else None,
        "port": address[1] if address else None,
        "folders": list(folders),
        "modules": list(CLIENT_MODULES),
        "parse": parse,
    }
    program = python if prefix else _program(host, python)
    argv = [*prefix, program, "-W", "ignore", "-c", inspect.getsource(probe)]
    try:
        done = host.run(argv, timeout_s=timeout_s, stdin=json.dumps(order), env=env)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{python} is no interpreter: {reason}", "name a working one with --python") from None
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("PROBE "):
            found: dict[str, Any] = json.loads(line.removeprefix("PROBE "))
            return found
    silent = (
        f"no answer within {timeout_s:g} s" if done.code is None else f"it ended with code {done.code} and no output"
    )
    last = (done.stderr.strip().splitlines() or [silent])[-1]
    raise InputError(f"{python} on {host.name} did not answer: {last}", "name a working interpreter with --python")


def _program(host: Host, python: str) -> str:
    if not isinstance(host, LocalHost):
        return python
    found = shutil.which(python)
    if found is None:
        raise InputError(f"there is no interpreter {python!r}", "name the server's Python: --python VENV/bin/python")
    return found


def preflight(
    target: Target, host: Host, *, folder: Path, env: Mapping[str, str] | None = None, timeout_s: float = 180.0
) -> Engine:
    """Checks everything that can be known before the start.

    Raises:
        InputError: no interpreter, no SGLang in it, or its parser refuses the argv (exit code 2).
        JudgedError: the port is taken, or disk or shared memory is too small (exit code 1).
        HostLostError: the host cannot be reached.
    """
    python = target.python or "python3"
    shm = "/dev/shm"
    folders = [shm] if not isinstance(host, LocalHost) else [shm, str(folder)]
    found = look(
        host,
        python,
        arguments=target.arguments,
        address=(target.host, target.port),
        folders=folders,
        env={**dict(env or {}), **dict(target.env)},
        timeout_s=timeout_s,
    )
    _refuse_engine(found, python)
    if not found.get("port_free", True):
        raise JudgedError(
            "port-in-use",
            f"{target.host}:{target.port} on {host.name}: {found.get('port_error')}; stop its holder or give --port",
            stage=Stage.PREFLIGHT,
        )
    _check_space(found["free_bytes"], target, host.name, shm)
    modules = found["modules"]
    client = next((name for name in CLIENT_MODULES if modules.get(name)), None)
    return Engine(python=python, version=found["sglang"], client=client)


def refuse_engine(target: Target, host: Host, *, prefix: Sequence[str] = (), timeout_s: float = 180.0) -> str | None:
    """The part of :func:`preflight` that concerns the engine, for a service whose port its predecessor still holds.

    Args:
        prefix: command that runs the interpreter, such as ``docker run --rm --interactive IMAGE``.

    Raises:
        InputError: no interpreter, no SGLang, or arguments that its parser refuses.
    """
    python = "python3" if prefix else target.python or "python3"
    found = look(host, python, arguments=target.arguments, env=dict(target.env), prefix=prefix, timeout_s=timeout_s)
    _refuse_engine(found, python)
    version = found["sglang"]
    return version if isinstance(version, str) else None


def _refuse_engine(found: Mapping[str, Any], python: str) -> None:
    """Raises InputError with everything that is wrong with the engine."""
    problems: list[Problem] = []
    if found.get("sglang") is None:
        problems.append(
            Problem(
                f"this Python ({found['python']}) has no SGLang",
                field="--python",
                value=python,
                hint="name the Python of the environment that SGLang is installed in",
            )
        )
    parser = found.get("parser") or {}
    if parser.get("ok") is False:
        error = (parser["stderr"].strip().splitlines() or ["no message"])[-1]
        problems.append(
            Problem(
                f"SGLang {found['sglang']} refuses the arguments: {error.partition('error: ')[2] or error}",
                field="argv",
                hint="plan again with --engine-version of the installed SGLang, or correct the flag",
            )
        )
    if problems:
        raise InputError(problems)
    if parser.get("ok") is None:
        raise InputError(
            f"SGLang in {python} cannot be imported: {parser.get('stderr')}", "mend that environment first"
        )


def _check_space(free: Mapping[str, int], target: Target, name: str, shm: str) -> None:
    ranks = int(target.option("--tp-size", "--tp", "--tensor-parallel-size") or 1)
    need = MIN_SHM_BYTES if ranks == 1 else MIN_SHM_PER_RANK_BYTES * ranks
    if shm in free and free[shm] < need:
        raise JudgedError(
            Cause.SHM_SMALL,
            f"/dev/shm on {name} has {free[shm] / 1024**2:.0f} MiB free, {need / 1024**2:.0f} are needed for {ranks}"
            " ranks; in a container give --shm-size or --ipc=host",
            stage=Stage.PREFLIGHT,
        )
    for folder, bytes_ in free.items():
        if folder != shm:
            check_disk(folder, bytes_)


def check_disk(folder: str, free_bytes: int | None = None) -> None:
    """Whether the folder's disk has room for logs and records.

    Raises:
        JudgedError: it has not.
    """
    free = shutil.disk_usage(folder).free if free_bytes is None else free_bytes
    if free < MIN_DISK_BYTES:
        raise JudgedError(
            Cause.DISK_FULL,
            f"{os.path.abspath(folder)} has {free / 1024**2:.0f} MiB free, {MIN_DISK_BYTES / 1024**2:.0f} are needed",
            stage=Stage.PREFLIGHT,
        )
