"""Models: acceptance, step cost, memory, throughput. Arrays in, arrays out; nothing is decided here."""

from __future__ import annotations

__all__: list[str] = []
