"""TOML that remembers where each key stands, so that an error can name file and line."""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

from planner._record import record
from planner.errors import InputError, Problem

__all__ = ["KeyPath", "TomlSource", "parse_toml", "read_toml"]

MAX_BYTES = 10 * 1024 * 1024

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_.\-]+)\s*=""")

KeyPath = tuple[str | int, ...]


@record()
class TomlSource:
    """Parsed TOML that knows the line of every key that starts a line."""

    name: str
    data: dict[str, Any]
    text: str

    @cached_property
    def lines(self) -> dict[KeyPath, int]:
        """Line of each key, found when the first fault is to be told."""
        return _line_index(self.text)

    def line_of(self, path: KeyPath) -> int | None:
        """Line (from 1) of the deepest part of ``path`` that is known."""
        for end in range(len(path), 0, -1):
            if (line := self.lines.get(path[:end])) is not None:
                return line
        return None


def read_toml(path: Path) -> TomlSource:
    """Read and parse a TOML file.

    Raises:
        InputError: the file is missing, a folder, too large, not UTF-8 or not TOML.
    """
    name = str(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError([Problem(f"larger than {MAX_BYTES // 1024 // 1024} MB", file=name)])
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError([Problem(f"not UTF-8 text ({error.reason} at byte {error.start})", file=name)]) from None
    except OSError as error:
        raise InputError([Problem(error.strerror or str(error), file=name, hint="check the path")]) from None
    return parse_toml(text, name=name)


def parse_toml(text: str, *, name: str) -> TomlSource:
    """Parse TOML text.

    Raises:
        InputError: with the line of the syntax error.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        line = int(found.group(1)) if found else None
        message = re.sub(r"\s*\(at .*\)$", "", str(error))
        raise InputError([Problem(f"not valid TOML: {message}", file=name, line=line)]) from None
    return TomlSource(name=name, data=data, text=text)


def _line_index(text: str) -> dict[KeyPath, int]:
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    here: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            parts = _resolve(tuple(part.strip().strip("\"'") for part in header.group(2).split(".")), counts)
            if header.group(1) == "[[":
                index = counts.get(parts, -1) + 1
                counts[parts] = index
                parts = (*parts, index)
            here = parts
            lines.setdefault(here, number)
        elif key := _KEY.match(line):
            lines.setdefault((*here, *(part.strip("\"'") for part in key.group(1).split("."))), number)
    return lines


def _resolve(parts: tuple[str, ...], counts: dict[KeyPath, int]) -> KeyPath:
    """``limit.evidence`` inside the third ``[[limit]]`` is ``("limit", 2, "evidence")``."""
    path: KeyPath = ()
    for part in parts[:-1]:
        path = (*path, part)
        if path in counts:
            path = (*path, counts[path])
    return (*path, parts[-1])
