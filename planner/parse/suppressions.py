"""Inline suppressions, and the engine versions that a file names."""

from __future__ import annotations

import re

from planner.parse.model import Suppression, Token
from planner.parse.source import Document

__all__ = ["named_images", "suppressions"]

_SUPPRESSION = re.compile(r"(?:#|//)[ \t]*plan-config:[ \t]*ignore=([A-Za-z0-9_,-]+)[ \t]*([^\r\n]*)")
_IMAGE = re.compile(
    r"(?<![\w./:@-])(?:(?:[\w.-]+(?::\d+)?/)*[\w.-]*sglang[\w.-]*:[\w][\w.-]*(?:@sha256:[0-9a-f]{64})?"
    r"|sglang(?:\[[\w,]+\])?\s*==\s*[\w.]+)(?![\w/])"
)


def suppressions(document: Document) -> tuple[Suppression, ...]:
    """Every ``# plan-config: ignore=CODE reason`` of a file."""
    if "plan-config:" not in document.text:
        return ()
    found = []
    for match in _SUPPRESSION.finditer(document.text):
        line, column = document.place(match.start())
        before = document.text[match.start() - column + 1 : match.start()]
        codes = tuple(code for code in match.group(1).split(",") if code)
        if codes:
            found.append(Suppression(codes, match.group(2).strip(), line, not before.strip()))
    return tuple(found)


def named_images(document: Document) -> tuple[Token, ...]:
    """Images of the engine and ``sglang==version`` pins outside of comment lines."""
    if "sglang" not in document.text:
        return ()
    found: dict[str, Token] = {}
    for match in _IMAGE.finditer(document.text):
        line_start = document.text.rfind("\n", 0, match.start()) + 1
        if document.text[line_start : match.start()].lstrip().startswith("#"):
            continue
        found.setdefault(match.group(), document.whole(match.group(), match.start(), match.end()))
    return tuple(found.values())
