"""What the user sees while a server starts: a bar on a terminal, plain lines elsewhere (rich is loaded for the bar)."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["BarUi", "PlainUi", "SilentUi", "Step", "Ui", "make_ui", "step_of"]

_BAR = re.compile(r"(?P<what>[^:|]*?):?\s+(?P<percent>\d{1,3})%.*?(?P<done>\d+)/(?P<total>\d+)")
_BATCH = re.compile(r"Capturing batches \((?:bs|num_tokens)=(\d+)")
_MARKS = (
    ("Load weight begin", "loading weights"),
    ("Load weight end", "weights loaded"),
    ("KV Cache is allocated", "KV pool allocated"),
    ("raph begin", "capturing graphs"),
    ("raph end", "graphs captured"),
    ("fired up and ready", "server says ready"),
)

Step = tuple[str, int | None, int | None]
"""(label, done, total)."""


def step_of(lines: Sequence[str]) -> Step | None:
    """The latest step that the lines tell of."""
    for line in reversed(lines):
        if "%" in line and (found := _BAR.search(line)):
            batch = _BATCH.search(line)
            label = f"capturing graphs, batch {batch.group(1)}" if batch else _label(found.group("what"))
            return label, int(found.group("done")), int(found.group("total"))
        for mark, label in _MARKS:
            if mark in line:
                return label, None, None
    return None


def _label(text: str) -> str:
    if "checkpoint shards" in text or "weight" in text.lower() or "loading shards" in text.lower():
        return "loading weights"
    return text.strip().rsplit("]", 1)[-1].strip()[-40:] or "working"


class Ui(Protocol):
    """Where progress goes."""

    def say(self, text: str) -> None:
        """One line that stays."""
        ...

    def step(self, label: str, done: int | None = None, total: int | None = None) -> None:
        """Where the present stage stands."""
        ...

    def close(self) -> None:
        """Takes the bar away."""
        ...


class SilentUi:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def step(self, label: str, done: int | None = None, total: int | None = None) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class PlainUi:
    """Lines without control characters; a step of the same label at most every ten seconds."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._label = ""
        self._shown_at = 0.0

    def say(self, text: str) -> None:
        """One line."""
        print(text, file=self._stream, flush=True)

    def step(self, label: str, done: int | None = None, total: int | None = None) -> None:
        """One line when the label is new or old enough."""
        now = time.monotonic()
        if label == self._label and now - self._shown_at < 10.0:
            return
        self._label, self._shown_at = label, now
        self.say(f"  {label}{f' {done}/{total}' if total else ''}")

    def close(self) -> None:
        """Nothing to take away."""


class BarUi:
    """A progress bar of rich."""

    def __init__(self, stream: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress: Progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=Console(file=stream),
            transient=True,
        )
        self._progress.start()
        self._task: TaskID = self._progress.add_task("starting", total=None, count="")

    def say(self, text: str) -> None:
        """One line above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)

    def step(self, label: str, done: int | None = None, total: int | None = None) -> None:
        """Moves the bar."""
        count = f"{done}/{total}" if total else ""
        self._progress.update(self._task, description=label, completed=done or 0, total=total, count=count)

    def close(self) -> None:
        """Takes the bar away."""
        self._progress.stop()


def make_ui(stream: IO[str] | None = None, *, quiet: bool = False) -> Ui:
    """A bar when the stream is a terminal, lines otherwise."""
    stream = stream or sys.stderr
    if quiet:
        return SilentUi()
    return BarUi(stream) if stream.isatty() else PlainUi(stream)
