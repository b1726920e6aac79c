"""What a review returns: findings, what each launch would run, what was not read and what was set aside."""

from __future__ import annotations

from typing import Any

from planner.domain.base import Value
from planner.domain.finding import Finding, Level
from planner.domain.launch import ArgValue

__all__ = ["DecisionLine", "LaunchReport", "NotRead", "Report", "SetAside"]


class DecisionLine(Value):
    """One value that the engine fills or changes."""

    field: str
    before: ArgValue | None
    after: ArgValue | None
    because: str
    source: str


class LaunchReport(Value):
    """One launch of a file: where it stands, what it asks for and what would run."""

    file: str
    line: int
    name: str | None = None
    role: str | None = None
    condition: str | None = None
    engine_version: str
    hardware: str | None = None
    model: str | None = None
    asked: tuple[tuple[str, ArgValue], ...] = ()
    unknown: tuple[str, ...] = ()
    """Arguments that are given with a value that cannot be read."""
    effective: tuple[tuple[str, Any], ...] = ()
    """Values that would run; empty when the engine's picture could not be asked (see ``notes``)."""
    decisions: tuple[DecisionLine, ...] = ()
    predicted: tuple[tuple[str, float], ...] = ()
    """tok_per_s and its interval, where a prediction has grounds."""
    not_predicted: str | None = None
    """Why there is no prediction."""
    notes: tuple[str, ...] = ()


class NotRead(Value):
    """A file or a part of one that could not be read."""

    file: str
    line: int | None = None
    reason: str


class SetAside(Value):
    """A finding that was not counted, and why."""

    code: str
    file: str | None = None
    line: int | None = None
    message: str
    reason: str
    by: str
    """``inline``, ``pyproject.toml`` or ``baseline``."""


class Report(Value):
    """A review of one or more launch files. ``exit_code`` follows the findings at or above a level."""

    findings: tuple[Finding, ...] = ()
    launches: tuple[LaunchReport, ...] = ()
    skipped: tuple[str, ...] = ()
    """Files passed over and rules that could not be judged, with the reason."""
    unreadable: tuple[NotRead, ...] = ()
    set_aside: tuple[SetAside, ...] = ()

    def exit_code(self, fail_on: Level | None = Level.ERROR) -> int:
        """0 clean, 1 findings at or above ``fail_on``, 2 when something could not be read."""
        if self.unreadable:
            return 2
        if fail_on is None:
            return 0
        rank = {Level.NOTE: 0, Level.WARNING: 1, Level.ERROR: 2}
        return int(any(rank[finding.level] >= rank[fail_on] for finding in self.findings))

    @property
    def worst(self) -> Level | None:
        """Level of the worst finding; None without findings."""
        order = (Level.ERROR, Level.WARNING, Level.NOTE)
        return next((level for level in order if any(f.level is level for f in self.findings)), None)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values, with the keys that ``--format json`` prints."""
        return {
            "findings": [
                finding.model_dump(mode="json", include=_FINDING_KEYS) | {"suppressed": False}
                for finding in self.findings
            ],
            "launches": [
                launch.model_dump(mode="json", exclude={"asked", "effective", "predicted"})
                | {
                    "asked": _plain(dict(launch.asked)),
                    "effective": _plain(dict(launch.effective)),
                    "predicted": dict(launch.predicted) or None,
                }
                for launch in self.launches
            ],
            "skipped": list(self.skipped) + [f"{item.file}: {item.reason}" for item in self.unreadable],
            "unreadable": [item.model_dump(mode="json") for item in self.unreadable],
            "suppressed": [item.model_dump(mode="json") for item in self.set_aside],
        }


_FINDING_KEYS = {
    "code",
    "slug",
    "level",
    "consequence",
    "file",
    "line",
    "column",
    "message",
    "why",
    "fields",
    "fix",
    "sources",
}


def _plain(value: Any) -> Any:
    """Values that JSON can hold; anything else as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
