"""What an experiment has done so far, on disk after every step: kill -9 loses at most the launch that was running.

One JSON line for each event, flushed to the disk before the next step begins. A line that was cut in the middle is the
last one and says nothing; it is left out when the journal is read and overwritten when it is written again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from planner.errors import InputError, Problem
from planner.learn.trial import Result, Runner, Trial

__all__ = ["Journal", "open_journal"]

SCHEMA_VERSION = 1
LOCK_PATIENCE_S = 3.0


class Journal:
    """Finished trials of one experiment, in order, with repeats."""

    def __init__(
        self, path: Path, stream: IO[str], header: dict[str, Any], finished: list[tuple[Trial, Result]]
    ) -> None:
        self.path = path
        self.header = header
        self.finished = finished
        self._stream = stream

    def started(self, trial: Trial, *, why: str) -> None:
        """Notes that a trial begins."""
        self._write({"event": "started", "trial": trial.model_dump(mode="json"), "why": why})

    def ended(self, trial: Trial, result: Result) -> None:
        """Notes what came of it. After this line the trial is never run again for the same reason."""
        self._write(
            {"event": "ended", "trial": trial.model_dump(mode="json"), "result": result.model_dump(mode="json")}
        )
        self.finished.append((trial, result))

    def results_of(self, trial_id: str) -> list[Result]:
        """Every result of one trial."""
        return [result for trial, result in self.finished if trial.id == trial_id]

    def replay(self, runner: Runner) -> Callable[[Trial, str], Result]:
        """Runs trials for an experiment that asks for them in a fixed order: what it asked before is answered from
        here, the next is run and written down."""
        asked: Counter[str] = Counter()

        def run(trial: Trial, why: str) -> Result:
            asked[trial.id] += 1
            past = self.results_of(trial.id)
            if asked[trial.id] <= len(past):
                return past[asked[trial.id] - 1]
            self.started(trial, why=why)
            result = runner.run(trial, asked[trial.id])
            self.ended(trial, result)
            return result

        return run

    def _write(self, event: dict[str, Any]) -> None:
        self._stream.write(json.dumps(event) + "\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())


@contextmanager
def open_journal(path: Path, *, header: dict[str, Any]) -> Iterator[Journal]:
    """The journal at ``path``, new or continued; held by one process at a time.

    Args:
        header: what the experiment is about (hardware, model, kind). A journal of something else is refused.

    Raises:
        InputError: another process holds it, it is no journal, or it is about something else.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        _lock(stream, str(path))
        stream.seek(0)
        whole, good_bytes = _read(stream, str(path))
        finished: list[tuple[Trial, Result]] = []
        stream.truncate(good_bytes)
        stream.seek(0, os.SEEK_END)
        if whole:
            found = whole[0]
            if found.get("event") != "experiment" or found.get("schema_version") != SCHEMA_VERSION:
                raise InputError([Problem("not a journal of this version", file=str(path), hint="name another file")])
            if found.get("about") != header:
                problem = f"is about {json.dumps(found.get('about'))}, not {json.dumps(header)}"
                raise InputError([Problem(problem, file=str(path), hint="name another file, or delete this one")])
            for event in whole[1:]:
                if event.get("event") != "ended":
                    continue
                result = Result.model_validate(event["result"])
                # A trial that was refused before a start may be let through now: with another Python, or --allow.
                if result.launched:
                    finished.append((Trial.model_validate(event["trial"]), result))
        journal = Journal(path, stream, header, finished)
        if not whole:
            journal._write({"event": "experiment", "schema_version": SCHEMA_VERSION, "about": header})
        yield journal


def _lock(stream: IO[str], name: str) -> None:
    """Holds the file. A child of a killed run may hold it for a moment longer, until it is a program of its own."""
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() >= deadline:
                raise InputError([Problem("another run holds it", file=name, hint="wait for it or stop it")]) from None
            time.sleep(0.05)


def _read(stream: IO[str], name: str) -> tuple[list[dict[str, Any]], int]:
    """Events of all complete lines, and the bytes that they take."""
    events: list[dict[str, Any]] = []
    good_bytes = 0
    lines = stream.read().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        cut = not line.endswith("\n")
        try:
            event = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise InputError([Problem("not a line of a journal", file=name, line=number)]) from None
        if cut or not isinstance(event, dict):
            break
        events.append(event)
        good_bytes += len(line.encode("utf-8"))
    return events, good_bytes
