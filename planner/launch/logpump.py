"""Writes the server's output into the log file with secrets hidden. Runs as its own process.

It outlives the launcher (a server that was handed over keeps its log) and ends when the last writer has closed. It
never stops reading: when the disk is full, lines are counted instead of written, so that the server does not block.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from planner.diagnose.redact import redact

__all__ = ["LOST_MARK", "Hider", "main", "pump"]

LOST_MARK = "[plan-config] log lines lost: "
"""Written where lines are missing, as soon as writing works again."""
_DIGITS = str.maketrans("123456789", "0" * 9)
_FORMS_LIMIT = 4096
_FORM_LIMIT = 1000
_LINE_LIMIT_BYTES = 256 * 1024


class Hider:
    """``redact`` with a memory of forms that hold no secret.

    A server prints the same few lines with other numbers. Which digit stands where changes nothing in what ``redact``
    finds, as its patterns know digits only as a class. So a line with every digit made 0 stands for all of its form.
    """

    def __init__(self) -> None:
        self._harmless: set[str] = set()

    def hide(self, line: str) -> str:
        """The line with secrets hidden."""
        form = line.translate(_DIGITS)
        if form in self._harmless:
            return line
        shown = redact(line)
        if shown == line and len(line) <= _FORM_LIMIT:
            if len(self._harmless) >= _FORMS_LIMIT:
                self._harmless.clear()
            self._harmless.add(form)
        return shown


def pump(source: int, target: int) -> int:
    """Copies lines from one file descriptor to another. Returns how many lines could not be written."""
    hidden = Hider().hide
    n_lost = n_lost_total = 0
    rest = b""
    while True:
        chunk = os.read(source, 1 << 16)
        # Progress bars rewrite their line with a carriage return: each state becomes a line.
        *lines, rest = (rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if len(rest) > _LINE_LIMIT_BYTES or (not chunk and rest):
            lines.append(rest)
            rest = b""
        if lines:
            text = "".join(hidden(line.decode("utf-8", "replace")) + "\n" for line in lines)
            if n_lost:
                text = f"{LOST_MARK}{n_lost}\n{text}"
            if _write(target, text.encode()):
                n_lost = 0
            else:
                n_lost += len(lines)
                n_lost_total += len(lines)
        if not chunk:
            return n_lost_total


def _write(target: int, data: bytes) -> bool:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError as error:
        # Told to the launcher, if it is still there.
        with contextlib.suppress(OSError):
            os.write(1, f"{error.strerror}\n".encode())
        return False
    return True


def main(arguments: list[str]) -> int:
    """``logpump PATH``: standard input goes to the end of PATH. Exit code 1 when lines were lost."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    target = os.open(arguments[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    n_lost = pump(0, target)
    with contextlib.suppress(OSError):
        os.fsync(target)
    return 1 if n_lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
