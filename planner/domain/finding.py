"""What a review says about a launch: one finding for each broken limit or rule."""

from __future__ import annotations

from enum import StrEnum

from planner._record import record
from planner.domain.launch import ArgValue
from planner.domain.limit import Consequence

__all__ = ["Finding", "Fix", "FixEdit", "Level"]


class Level(StrEnum):
    """How loud a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def softer(self) -> Level:
        """One level lower (a note stays a note)."""
        return Level.WARNING if self is Level.ERROR else Level.NOTE


@record(kw_only=True)
class FixEdit:
    """Set a field (``value``), or take the argument away (``value`` None)."""

    field: str
    value: ArgValue | None


@record(kw_only=True)
class Fix:
    """Edits that together clear a finding."""

    edits: tuple[FixEdit, ...]
    safe: bool = True
    """False where the edit may change what the server answers or needs a person's choice."""
    note: str | None = None


@record(kw_only=True)
class Finding:
    """One broken limit or rule."""

    code: str
    """Rule code (``SPC003``) or limit id."""
    slug: str
    level: Level
    consequence: Consequence
    message: str
    """What is wrong here, with the values."""
    why: str = ""
    """Mechanism and evidence."""
    fields: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    column: int | None = None
    fix: Fix | None = None
    sources: tuple[str, ...] = ()
