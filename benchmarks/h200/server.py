"""One server process of the campaign: start, readiness, requests, decode lines, stop."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.launch.logwatch import LogWatch

__all__ = ["Gpu", "Server", "ServerError", "prompt"]

HERE = Path(__file__).resolve().parent
_KEPT_LINE = re.compile(
    r"gate:|routed dummy|Load weight|KV Cache|Memory pool|Capture|max_total_num_tokens|avail mem|fired up|server_args="
    r"|Error|error|Traceback|Exception|assert|Warning|WARNING|retract|OOM|out of memory"
)


class ServerError(RuntimeError):
    """The server died, or was not ready in time."""


MAX_PROMPT_TOK = 8192


@lru_cache(maxsize=512)
def _stream(index: int, vocab: int) -> tuple[int, ...]:
    state, ids = (index * 2654435761 + 12345) & 0xFFFFFFFF, []
    for _ in range(MAX_PROMPT_TOK):
        state = (1664525 * state + 1013904223) & 0xFFFFFFFF
        ids.append(3 + (state >> 8) % (vocab - 3))
    return tuple(ids)


def prompt(index: int, n_tok: int, vocab: int) -> list[int]:
    """Token ids of prompt ``index``: a fixed stream, so that a shorter prompt is the beginning of a longer one."""
    return list(_stream(index, vocab)[:n_tok])


class Server:
    """A server that waits at its gate until :meth:`open_gate`."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        port: int,
        work: Path,
        env: Mapping[str, str] | None = None,
        launcher: Sequence[str] | None = None,
    ) -> None:
        self.name, self.port = name, port
        self.argv = [*argv, "--port", str(port), "--host", "127.0.0.1"]
        self.gate, self.log_path = work / f"{name}.gate", work / f"{name}.log"
        self.gate.unlink(missing_ok=True)
        self.own_env = dict(env or {})
        full = {**os.environ, "PYTHONUNBUFFERED": "1", "GATE_FILE": str(self.gate), **self.own_env}
        self.started_at = time.monotonic()
        self.opened_at: float | None = None
        self._stream = self.log_path.open("wb")
        program = list(launcher or (sys.executable, str(HERE / "serve.py")))
        self.process = subprocess.Popen(
            [*program, *self.argv], stdout=self._stream, stderr=subprocess.STDOUT, env=full, start_new_session=True
        )
        self.log = LogWatch(self.log_path)

    def imports_done(self) -> bool:
        """Whether the scheduler waits at the gate."""
        return b"gate: imports done" in self.log_path.read_bytes()

    def open_gate(self) -> None:
        self.gate.touch()
        self.opened_at = time.monotonic()

    def wait_ready(self, timeout_s: float) -> float:
        """Seconds from the gate to the first answer.

        Raises:
            ServerError: dead or late.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self.check()
            try:
                self.get("/model_info", timeout_s=2.0)
            except (urllib.error.URLError, OSError, ValueError):
                time.sleep(0.3)
                continue
            return time.monotonic() - (self.opened_at or self.started_at)
        raise ServerError(f"not ready after {timeout_s:g} s")

    def check(self) -> None:
        """Raises ServerError when the log shows a crash or the process is gone."""
        self.log.read()
        if self.log.crashed_at is not None:
            raise ServerError("the log shows a crash")
        if self.process.poll() is not None:
            raise ServerError(f"the process ended with {self.process.returncode}")

    def get(self, path: str, *, timeout_s: float = 30.0) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout_s) as answer:
            return json.loads(answer.read())

    def generate(self, prompts: Sequence[Sequence[int]], n_tok: int, *, temperature: float, timeout_s: float) -> Any:
        """Answers of one batch (``ignore_eos``: each has exactly ``n_tok`` tokens)."""
        sampling = {"temperature": temperature, "max_new_tokens": n_tok, "ignore_eos": True}
        body = json.dumps({"input_ids": list(map(list, prompts)), "sampling_params": sampling}).encode()
        url = f"http://127.0.0.1:{self.port}/generate"
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return json.loads(answer.read())

    def abort(self) -> None:
        """Ends every request."""
        body = json.dumps({"abort_all": True}).encode()
        url = f"http://127.0.0.1:{self.port}/abort_request"
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10.0) as answer:
            answer.read()

    def stop(self) -> None:
        """Kills the server's session and waits for it."""
        import psutil

        family: list[Any] = []
        if self.process.poll() is None:
            try:
                family = psutil.Process(self.process.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                family = []
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for child in family:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait(timeout=20)
        psutil.wait_procs(family, timeout=10)
        self._stream.close()

    def kept_log(self, limit: int = 400) -> list[str]:
        """Lines of the log that tell how the server started and what went wrong."""
        lines = self.log_path.read_text("utf-8", "replace").splitlines()
        kept = [line[:1500] for line in lines if _KEPT_LINE.search(line) and "Decode batch" not in line]
        if self.log.crashed_at is not None or self.process.poll() not in (None, -9):
            kept += ["--- tail"] + [line[:600] for line in lines[-120:]]
        return kept[:limit] if len(kept) <= limit else [*kept[: limit // 2], "...", *kept[-limit // 2 :]]


class Gpu:
    """Samples of ``nvidia-smi`` beside a run; empty on a machine without it."""

    _FIELDS = ("power_w", "sm_clock_mhz", "temperature_c", "memory_mib", "busy_pct")

    def __init__(self, path: Path, index: str = "0") -> None:
        self.path, self.index = path, index
        query = "--query-gpu=power.draw,clocks.sm,temperature.gpu,memory.used,utilization.gpu"
        self._stream = path.open("wb")
        try:
            self.process: subprocess.Popen[bytes] | None = subprocess.Popen(
                ["nvidia-smi", "-i", index, query, "--format=csv,noheader,nounits", "-lms", "200"],
                stdout=self._stream,
                stderr=subprocess.DEVNULL,
            )
        except FileNotFoundError:
            self.process = None

    def mark(self) -> int:
        """Where the samples end now."""
        return self.path.stat().st_size

    def between(self, start: int) -> dict[str, float]:
        """Means since ``start``."""
        with self.path.open("rb") as stream:
            stream.seek(start)
            lines = stream.read().decode("ascii", "replace").splitlines()[1:-1]
        rows = []
        for line in lines:
            try:
                values = [float(part) for part in line.split(",")]
            except ValueError:
                continue
            if len(values) == len(self._FIELDS):
                rows.append(values)
        if not rows:
            return {}
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        return {"n_samples": float(len(rows)), **dict(zip(self._FIELDS, means, strict=True))}

    def wait_free(self, below_mib: float, timeout_s: float) -> float:
        """Memory in use, once it is below a bound or time is up."""
        end, used = time.monotonic() + timeout_s, 0.0
        while self.process is not None:
            query = ["nvidia-smi", "-i", self.index, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
            used = float(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0])
            if used < below_mib or time.monotonic() > end:
                break
            time.sleep(0.2)
        return used

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._stream.close()
