"""One candidate of a space by index."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cell"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Core row, size and memory fraction."""

    row: int
    size: int
    fraction: int
