"""A plan as a systemd service."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from planner.errors import InputError
from planner.launch.forms.base import FormState, Snapshot, must, read_file, remove_file, write_file
from planner.launch.host import Completed, Host, LocalHost
from planner.launch.preflight import refuse_engine
from planner.launch.target import Target

__all__ = ["SystemdForm", "unit_text"]


def _quoted(word: str, *, command: bool) -> str:
    """A word of a unit file: C escapes in double quotes, ``%`` doubled, in commands ``$`` too (systemd.service(5))."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    if command:
        word = word.replace("$", "$$")
    plain = word and not set(word) & set(" \t'\"\\;#")
    return word if plain else f'"{word}"'


def unit_text(argv: Sequence[str], env: Sequence[tuple[str, str]], *, description: str, cwd: str | None = None) -> str:
    """The unit file. The first word of ``argv`` is an absolute path."""
    lines = ["[Unit]", f"Description={description.replace('%', '%%')}", "Wants=network-online.target"]
    lines += ["After=network-online.target", "", "[Service]", "Type=exec"]
    lines += [f"Environment={_quoted(f'{name}={value}', command=False)}" for name, value in env]
    if cwd is not None:
        lines.append(f"WorkingDirectory={cwd.replace('%', '%%')}")
    lines.append("ExecStart=" + " ".join(_quoted(word, command=True) for word in argv))
    lines += ["KillMode=control-group", "TimeoutStopSec=60", "Restart=on-failure", "RestartSec=30"]
    lines += ["LimitNOFILE=1048576", "LimitMEMLOCK=infinity", "", "[Install]", "WantedBy=multi-user.target", ""]
    return "\n".join(lines)


@dataclass(slots=True)
class SystemdForm:
    """One service. ``folder`` is where its unit file stands (``/etc/systemd/system``)."""

    target: Target
    host: Host
    unit: str
    folder: str = "/etc/systemd/system"
    user: bool = False
    python: str = "python3"
    """Interpreter on the host for file operations."""
    cwd: str | None = None
    _notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """With its suffix."""
        return self.unit if self.unit.endswith(".service") else f"{self.unit}.service"

    @property
    def path(self) -> str:
        """Of the unit file."""
        return f"{self.folder.rstrip('/')}/{self.name}"

    @property
    def previous_path(self) -> str:
        """Where the old unit is kept until the new one is right."""
        return f"{self.path}.previous"

    @property
    def text(self) -> str:
        """The new unit file."""
        program = self.target.argv[0]
        if isinstance(self.host, LocalHost):
            program = shutil.which(program) or program
        if not program.startswith("/"):
            raise InputError(f"a unit needs the absolute path of {program!r}", "give --python /path/to/bin/python")
        argv = (program, *self.target.argv[1:])
        return unit_text(
            argv, self.target.env, description=f"SGLang, planned by plan-config ({self.unit})", cwd=self.cwd
        )

    def _systemctl(self, *words: str, timeout_s: float = 120.0) -> Completed:
        scope = ["--user"] if self.user else []
        return self.host.run(["systemctl", *scope, *words], timeout_s=timeout_s)

    def check(self) -> list[str]:
        """``systemd-analyze verify`` on the new text; without the tool a note says so.

        Raises:
            InputError: the unit is not valid, or a name that is none.
        """
        if "/" in self.unit or not self.unit.strip():
            raise InputError(f"{self.unit!r} is no unit name")
        text = self.text
        refuse_engine(self.target, self.host)
        if not isinstance(self.host, LocalHost):
            return ["the unit was not verified: that is done on this machine only"]
        if shutil.which("systemd-analyze") is None:
            return ["the unit was not verified: there is no systemd-analyze here"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.name
            path.write_text(text, encoding="utf-8")
            done = self.host.run(["systemd-analyze", "verify", "--man=no", str(path)], timeout_s=60.0)
        if done.code != 0:
            raise InputError(f"systemd-analyze refuses the unit: {done.stderr.strip() or done.stdout.strip()}")
        return []

    def snapshot(self) -> Snapshot:
        """Text of the present unit and whether it runs."""
        return Snapshot(text=read_file(self.host, self.python, self.path), was_running=self.state().running)

    def switch(self) -> None:
        """Keeps the old text, replaces it in one step, reloads, restarts."""
        old = read_file(self.host, self.python, self.path)
        if old is not None:
            write_file(self.host, self.python, self.previous_path, old)
        write_file(self.host, self.python, self.path, self.text)
        must(self._systemctl("daemon-reload"), "systemctl daemon-reload")
        must(self._systemctl("restart", self.name), f"systemctl restart {self.name}")

    def restore(self, snapshot: Snapshot) -> None:
        """The old text again, or no unit; running if it ran."""
        if snapshot.text is None or not snapshot.was_running:
            self._systemctl("stop", self.name)
        if snapshot.text is None:
            remove_file(self.host, self.python, self.path)
        else:
            write_file(self.host, self.python, self.path, snapshot.text)
        must(self._systemctl("daemon-reload"), "systemctl daemon-reload")
        if snapshot.text is not None and snapshot.was_running:
            must(self._systemctl("restart", self.name), f"systemctl restart {self.name}")
        remove_file(self.host, self.python, self.previous_path)

    def settle(self) -> None:
        """The copy of the old text goes."""
        remove_file(self.host, self.python, self.previous_path)

    def state(self) -> FormState:
        """From ``systemctl show``. A restart counts as an end: the judged process is gone."""
        words = ("show", self.name, "--property=ActiveState,SubState,MainPID,NRestarts,ExecMainStatus,Result")
        text = must(self._systemctl(*words, timeout_s=30.0), "systemctl show")
        said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        active = said.get("ActiveState") in ("active", "activating", "reloading")
        again = said.get("SubState") == "auto-restart" or said.get("NRestarts", "0") not in ("", "0")
        code = said.get("ExecMainStatus", "")
        return FormState(
            running=active and not again,
            pid=int(said.get("MainPID", "0") or 0) or None,
            code=int(code) if code.isdigit() else None,
            detail=f"{said.get('ActiveState')} ({said.get('SubState')}, {said.get('Result')})",
        )

    def follow_argv(self) -> list[str]:
        """The journal of the unit, messages only."""
        scope = ["--user"] if self.user else []
        return ["journalctl", *scope, "--unit", self.name, "--output", "cat", "--follow", "--lines", "0"]
