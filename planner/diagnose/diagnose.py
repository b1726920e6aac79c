"""Log in, diagnosis out: whole logs, files, streams, and a log that is still being written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from planner.diagnose.catalogue import causes
from planner.diagnose.facts import FactReader
from planner.diagnose.judge import Verdict, judge
from planner.diagnose.limits_seen import suggest
from planner.diagnose.model import Confidence, Diagnosis, LogFacts, Phase, SecondaryCause
from planner.diagnose.reader import LogReader
from planner.errors import InputError, Problem

__all__ = ["Diagnoser", "diagnose_lines", "diagnose_path", "diagnose_stream"]

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 20
MAX_BAD_FRAC = 0.1

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_ASYNC_NOTE = (
    "CUDA errors are asynchronous: the call, library or frame that reports this one is a victim; "
    "CUDA_LAUNCH_BLOCKING=1 (with graphs off) names the kernel"
)


class Diagnoser:
    """A diagnosis that grows with the log. Memory is bounded whatever the length of the log.

    >>> diagnoser = Diagnoser()
    >>> diagnoser.feed("launch_server.py: error: unrecognized arguments: --enable_metrics")
    >>> diagnoser.result().cause
    'arg-parser'
    """

    def __init__(self) -> None:
        self._reader = LogReader()

    def feed(self, line: str | bytes) -> None:
        """One line, with or without its newline."""
        raw = line.encode("utf-8", "replace") if isinstance(line, str) else line
        self._reader.feed(raw.rstrip(b"\n"))

    def feed_block(self, block: bytes) -> None:
        """Whole lines at once (faster than one by one)."""
        self._reader.feed_block(block.removesuffix(b"\n"))

    def facts(self) -> LogFacts:
        """What has been read about the current run, without a verdict."""
        reader = self._reader
        return reader.facts.facts(phase=reader.run.phase, n_lines=reader.n_lines, n_runs=reader.n_runs)

    def result(self) -> Diagnosis:
        """The diagnosis so far. May be asked again after more lines."""
        reader = self._reader
        verdict, facts = judge(reader.run, reader.facts), reader.facts
        phase = reader.run.phase
        if reader.earlier is not None:
            earlier_run, earlier_facts = reader.earlier
            earlier = judge(earlier_run, earlier_facts)
            if verdict.slug == "unknown" and earlier.slug not in ("healthy", "unknown"):
                verdict, facts, phase = earlier, earlier_facts, earlier_run.phase
                verdict.notes.append("seen in an earlier start of the server; the last start in this log is unfinished")
            elif earlier.slug not in ("healthy", verdict.slug) and earlier.lines:
                role = SecondaryCause(slug=earlier.slug, line=earlier.lines[0], role="other")
                verdict.secondary.append(role)
                verdict.notes.append(f"an earlier start in this log ended with {earlier.slug}")
        return _diagnosis(verdict, facts, facts.facts(phase=phase, n_lines=reader.n_lines, n_runs=reader.n_runs))

    @property
    def n_lines(self) -> int:
        """Lines read so far."""
        return self._reader.n_lines

    @property
    def empty(self) -> bool:
        """Whether nothing but blank lines was read."""
        return self._reader.n_lines == self._reader.n_blank


def diagnose_lines(lines: Iterable[str], *, name: str = "log") -> Diagnosis:
    """The diagnosis of a log given as lines.

    Raises:
        InputError: there is no line with text, or a line holds NUL characters.
    """
    diagnoser = Diagnoser()
    for line in lines:
        if "\x00" in line:
            raise InputError([_binary(name, diagnoser.n_lines + 1)])
        diagnoser.feed(line)
    if diagnoser.empty:
        raise InputError([_empty(name)])
    return diagnoser.result()


def diagnose_path(path: Path | str) -> Diagnosis:
    """The diagnosis of a log file, read in blocks.

    Raises:
        InputError: the file cannot be read, is empty or is not text.
    """
    name = str(path)
    try:
        with open(path, "rb") as stream:
            return diagnose_stream(stream, name=name)
    except OSError as error:
        raise InputError(
            [Problem(error.strerror or str(error), file=name, hint="check the path and its rights")]
        ) from None


def diagnose_stream(stream: IO[bytes], *, name: str = "-") -> Diagnosis:
    """The diagnosis of a binary stream, read to its end.

    Raises:
        InputError: the stream is empty or is not text.
    """
    diagnoser = Diagnoser()
    rest = b""
    cutting = False
    first = True
    while block := stream.read(BLOCK_BYTES):
        if first:
            _refuse_binary(block, name)
            first = False
        head, newline, tail = block.rpartition(b"\n")
        if not newline:
            if not cutting and len(rest) + len(block) <= LONGEST_LINE_BYTES:
                rest += block
            elif not cutting:
                rest, cutting = (rest + block)[:LONGEST_LINE_BYTES], True
            continue
        if cutting:
            _, _, head = head.partition(b"\n")
            diagnoser.feed_block(rest)
            if b"\n" in block[: len(block) - len(tail) - 1]:
                diagnoser.feed_block(head)
            cutting = False
        else:
            diagnoser.feed_block(rest + head)
        rest = tail
    if rest:
        diagnoser.feed_block(rest)
    if diagnoser.empty:
        raise InputError([_empty(name)])
    return diagnoser.result()


def _diagnosis(verdict: Verdict, facts: FactReader, read: LogFacts) -> Diagnosis:
    cause = causes()[verdict.slug]
    notes = ([_ASYNC_NOTE] if cause.asynchronous else []) + verdict.notes
    return Diagnosis(
        cause=cause.slug,
        title=cause.title,
        confidence=verdict.confidence,
        level=Confidence.of(verdict.confidence),
        lines=tuple(verdict.lines),
        not_=cause.not_,
        remedies=cause.remedies,
        suggested_limit=suggest(verdict, facts),
        why=cause.why,
        phase=Phase(verdict.phase),
        asynchronous=cause.asynchronous,
        secondary=tuple(verdict.secondary),
        notes=tuple(notes),
        engine_version=read.engine_version,
        facts=read,
    )


def _refuse_binary(block: bytes, name: str) -> None:
    sample = block[: 1 << 16]
    if sample[:2] == b"\x1f\x8b":
        raise InputError(
            [Problem("gzip archive, not a text log", file=name, hint="decompress it first: gzip -dc FILE | ... -")]
        )
    if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError([Problem("UTF-16 text", file=name, hint="convert it first: iconv -f UTF-16 -t UTF-8")])
    if b"\x00" in sample:
        raise InputError([_binary(name, None)])
    text = sample.decode("utf-8", "replace")
    bad = text.count("\ufffd") + len(_CONTROL.findall(sample))
    if bad > MAX_BAD_FRAC * max(1, len(text)):
        raise InputError([_binary(name, None)])


def _binary(name: str, line: int | None) -> Problem:
    return Problem("binary data, not a text log", file=name, line=line, hint="give the text that the server printed")


def _empty(name: str) -> Problem:
    return Problem("empty log", file=name, hint="give standard output and standard error of the server")
