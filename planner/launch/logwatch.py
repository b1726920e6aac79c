"""Follows the server's log while it grows: feeds the diagnoser, notices a crash, keeps decode lines of a window."""

from __future__ import annotations

import hashlib
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from planner.diagnose import DecodePoint, Diagnoser, Diagnosis, LogFacts
from planner.diagnose.facts import FactReader

__all__ = ["CRASH_MARKS", "LogWatch", "digest"]

CRASH_MARKS = (
    b"Scheduler hit an exception",
    b"Received sigquit from a child",
    b"SIGQUIT received. signum",
)
"""A server that printed one of these is dead, although its process may live for another 66 s (core dump wait)."""
_ERROR = re.compile(rb"^(?:[\w.]+\.)?\w*(?:Error|Exception)\b: [^\n]{1,400}", re.MULTILINE)
_CHUNK_BYTES = 1 << 22
_PARTIAL_LIMIT_BYTES = 1 << 20


@dataclass(slots=True)
class LogWatch:
    """Reads what is new in a log file. Memory is bounded: lines are not kept."""

    path: Path
    crashed_at: float | None = None
    """Monotonic time at which the first crash mark was read."""
    grown_at: float = field(default_factory=time.monotonic)
    """Monotonic time of the last growth."""
    n_lines: int = 0
    last_lines: list[str] = field(default_factory=list)
    """Lines of the last read, at most 200."""
    last_line: str = ""
    """The last line with text."""
    last_error: str = ""
    """The last line that names an exception."""
    _diagnoser: Diagnoser = field(default_factory=Diagnoser)
    _window: FactReader | None = None
    _offset: int = 0
    _partial: bytes = b""

    def read(self) -> int:
        """Takes in everything that was appended since the last call. Returns the number of new lines."""
        self.last_lines = []
        n_new = 0
        if not self.path.is_file():
            return 0
        with self.path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(self._offset)
            while self._offset < size and (chunk := stream.read(_CHUNK_BYTES)):
                self._offset += len(chunk)
                block, newline, rest = (self._partial + chunk).rpartition(b"\n")
                self._partial = rest if len(rest) <= _PARTIAL_LIMIT_BYTES else b""
                if newline:
                    n_new += self._take(block)
        if n_new:
            self.grown_at = time.monotonic()
            self.n_lines += n_new
        return n_new

    def _take(self, block: bytes) -> int:
        self._diagnoser.feed_block(block)
        if self.crashed_at is None and any(mark in block for mark in CRASH_MARKS):
            self.crashed_at = time.monotonic()
        if self._window is not None:
            for number, line in enumerate(block.split(b"\n")):
                if b"Decode batch" in line:
                    self._window.decode(self.n_lines + number, line.decode("utf-8", "replace"))
        tail = block[-65536:].split(b"\n")[-200:]
        self.last_lines = [line.decode("utf-8", "replace") for line in tail]
        self.last_line = next((line for line in reversed(self.last_lines) if line.strip()), self.last_line)
        if b"Error" in block or b"Exception" in block:
            for found in _ERROR.finditer(block):
                self.last_error = found.group().decode("utf-8", "replace")
        return block.count(b"\n") + 1

    def open_window(self) -> None:
        """Starts to collect decode lines."""
        self.read()
        self._window = FactReader()

    def close_window(self) -> tuple[DecodePoint, ...]:
        """Decode lines since :meth:`open_window`."""
        self.read()
        points = tuple(self._window.points) if self._window is not None else ()
        self._window = None
        return points

    def facts(self) -> LogFacts:
        """What the log says so far."""
        return self._diagnoser.facts()

    def diagnosis(self) -> Diagnosis:
        """Verdict on the log so far."""
        return self._diagnoser.result()

    @property
    def empty(self) -> bool:
        """Whether no line was read."""
        return self._diagnoser.empty


def digest(path: Path) -> str | None:
    """SHA-256 of the log, ``sha256:...``; None when there is none."""
    if not path.is_file() or not os.path.getsize(path):
        return None
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
