"""One candidate of a space by index."""

from __future__ import annotations

from planner._record import record

__all__ = ["Cell"]


@record()
class Cell:
    """Core row, size and memory fraction."""

    row: int
    size: int
    fraction: int
