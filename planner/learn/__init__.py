"""Runs as experiments: sweeps, probes, fault isolation, and what they teach as reviewable files."""

from __future__ import annotations

__all__: list[str] = []
