"""The space of candidates, its exact enumeration, and the explanation of the choice."""

from __future__ import annotations

__all__: list[str] = []
