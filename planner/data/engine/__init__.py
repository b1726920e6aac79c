"""Facts about SGLang versions: flag tables and release dates, and the reader of a wheel given by the user."""

from __future__ import annotations

__all__: list[str] = []
