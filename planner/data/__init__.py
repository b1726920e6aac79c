"""Packaged profiles, limits and tables, and the reading of the user's own. The only room that opens packaged files."""

from __future__ import annotations

from planner.data.load import (
    load_drafter,
    load_hardware,
    load_limits,
    load_model,
    packaged_ids,
    read_drafter,
    read_hardware,
    read_limits,
    read_model,
)

__all__ = [
    "load_drafter",
    "load_hardware",
    "load_limits",
    "load_model",
    "packaged_ids",
    "read_drafter",
    "read_hardware",
    "read_limits",
    "read_model",
]
