"""What SGLang does with a command line: flags by version, dialects, argv in and out, resolution. Pure."""

from __future__ import annotations

__all__: list[str] = []
