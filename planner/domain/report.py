"""What a review returns: findings, what each launch would run, what was not read and what was set aside."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from planner._record import record
from planner.domain.finding import Finding, Level
from planner.domain.launch import ArgValue

__all__ = ["DecisionLine", "LaunchReport", "NotRead", "Report", "SetAside"]


@record(kw_only=True)
class DecisionLine:
    """One value that the engine fills or changes."""

    field: str
    before: ArgValue | None
    after: ArgValue | None
    because: str
    source: str


@record(kw_only=True)
class LaunchReport:
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


@record(kw_only=True)
class NotRead:
    """A file or a part of one that could not be read."""

    file: str
    line: int | None = None
    reason: str


@record(kw_only=True)
class SetAside:
    """A finding that was not counted, and why."""

    code: str
    file: str | None = None
    line: int | None = None
    message: str
    reason: str
    by: str
    """``inline``, ``pyproject.toml`` or ``baseline``."""


@record(kw_only=True)
class Report:
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
            "findings": [_row(finding) | {"suppressed": False} for finding in self.findings],
            "launches": [
                _row(launch, without=("asked", "effective", "predicted"))
                | {
                    "asked": _plain(dict(launch.asked)),
                    "effective": _plain(dict(launch.effective)),
                    "predicted": dict(launch.predicted) or None,
                }
                for launch in self.launches
            ],
            "skipped": list(self.skipped) + [f"{item.file}: {item.reason}" for item in self.unreadable],
            "unreadable": [_row(item) for item in self.unreadable],
            "suppressed": [_row(item) for item in self.set_aside],
        }


def _row(value: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """A record as JSON values, in the order of its fields."""
    return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.name not in without}


def _plain(value: Any) -> Any:
    """Values that JSON can hold, records by field; anything else as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return _row(value)
    if isinstance(value, Enum):
        return value.value
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
