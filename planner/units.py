"""Units. Inside the planner everything is in seconds, bytes, tokens, requests, FLOP and GPUs; the unit is the last word
of a name. This module holds the conversion constants and the only functions that print other units."""

from __future__ import annotations

__all__ = ["GIB", "KIB", "MIB", "UNIT_SUFFIXES", "format_bytes", "format_count", "format_ms"]

KIB = 1024
MIB = 1024**2
GIB = 1024**3

UNIT_SUFFIXES = (
    "_s",
    "_bytes",
    "_bytes_per_s",
    "_bytes_per_tok",
    "_tok",
    "_tok_per_s",
    "_tok_per_s_per_user",
    "_req_per_s",
    "_flop_per_s",
    "_w",
    "_frac",
    "_size",
    "_len",
    "_dim",
    "_rank",
)
"""Last words that a numeric field of ``planner.domain`` may carry (counts start with ``n_`` instead)."""


def format_bytes(value: float) -> str:
    """``12.3 GiB`` for people; never parsed back."""
    for unit, size in (("TiB", 1024**4), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(value) >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,.0f} B"


def format_ms(seconds: float) -> str:
    """Seconds as milliseconds with three significant digits."""
    ms = seconds * 1e3
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 1 else f"{ms:.2f}"


def format_count(value: float) -> str:
    """A count with thousands separators and no decimals."""
    return f"{value:,.0f}"
