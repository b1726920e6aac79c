"""What a form of deployment must be able to do, so that it can be changed and rolled back in one way."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Protocol

from planner.errors import InputError, PlannerError
from planner.launch.forms import files_child
from planner.launch.host import Completed, Host

__all__ = ["Form", "FormError", "FormState", "Snapshot", "must", "read_file", "remove_file", "write_file"]


class FormError(PlannerError):
    """A command of the form failed; the message is the command's own."""


@dataclass(frozen=True, slots=True)
class FormState:
    """What the service manager says."""

    running: bool
    pid: int | None = None
    code: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was there before. ``text`` None: nothing was."""

    text: str | None
    was_running: bool


class Form(Protocol):
    """A unit or a container with a fixed name."""

    @property
    def host(self) -> Host:
        """Where it runs."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def check(self) -> list[str]:
        """Looks at it before anything is changed. Returns notes; raises InputError when it cannot work."""
        ...

    def snapshot(self) -> Snapshot:
        """What is there now."""
        ...

    def switch(self) -> None:
        """Puts the new form in place and starts it, in one step for whoever looks at it."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Puts the old form back; starts it if it ran."""
        ...

    def settle(self) -> None:
        """The new form is right: what was kept for a roll-back goes."""
        ...

    def state(self) -> FormState:
        """How it is."""
        ...

    def follow_argv(self) -> list[str]:
        """Command that prints its log from the switch on and keeps following it."""
        ...


def must(done: Completed, what: str) -> str:
    """Standard output of a command that has to work.

    Raises:
        FormError: it did not.
    """
    if done.code != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise FormError(f"{what} failed: {last}")
    return done.stdout


def _files(host: Host, python: str, order: dict[str, object]) -> dict[str, object]:
    done = host.run([python, "-c", inspect.getsource(files_child)], timeout_s=30.0, stdin=json.dumps(order))
    text = must(done, f"{order['op']} {order['path']} on {host.name}")
    answer: dict[str, object] = json.loads(text)
    if "error" in answer:
        raise InputError(f"{order['path']} on {host.name}: {answer['error']}")
    return answer


def read_file(host: Host, python: str, path: str) -> str | None:
    """Text of a file on the host; None when there is none."""
    text = _files(host, python, {"op": "read", "path": path}).get("text")
    return text if isinstance(text, str) else None


def write_file(host: Host, python: str, path: str, text: str) -> None:
    """Replaces a file on the host in one step."""
    _files(host, python, {"op": "write", "path": path, "text": text})


def remove_file(host: Host, python: str, path: str) -> None:
    """Takes a file on the host away, if it is there."""
    _files(host, python, {"op": "remove", "path": path})
