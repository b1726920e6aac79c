"""Forms of a line: cleaned for matching, shown as evidence, exception or not, degenerate answer or not."""

from __future__ import annotations

import re
import unicodedata

from planner.diagnose.model import LogLine
from planner.diagnose.redact import redact

__all__ = ["clean", "degenerate_answer", "is_exception", "is_plain", "shown"]

MAX_MATCHED = 20_000
MAX_SHOWN = 300

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EXCEPTION = re.compile(
    r"(?:^|[\s\])|:>'\"(])(?:[A-Za-z_][\w.]*\.)?(?:\w*(?:Error|Exception|Refusal)|Exception)\s*: ?\S"
    r"|\berror: |Capture (?:cuda|CUDA) graph failed|\bassert\w* (?:error|fail)|^\s*(?:E\s+)?AssertionError\b",
    re.IGNORECASE,
)
_RECORD = re.compile(r"\[\d{4}-\d\d-\d\d|\b(?:INFO|WARN|WARNING|DEBUG)\b|^usage: |^\s+File \"|^\s*[+$#] ")
_ANSWER = re.compile(
    r"""["'](?:content|text|reasoning_content|output_text)["']\s*:\s*["']((?:[^"'\\]|\\.){1,4000})["']"""
)
_RULERS = ("", "-", "=", "_", ".", "*", "#", "~", "\\n", "|")
"""Units that people repeat on purpose: rules and separators."""
_REPEAT = re.compile(r"(.{1,24}?)\1{7,}", re.DOTALL)


def clean(raw: bytes) -> str:
    """Text of a line without colour codes, cut to what is matched."""
    text = raw[:MAX_MATCHED].decode("utf-8", "replace")
    return _COLOUR.sub("", text) if "\x1b" in text else text


def shown(number: int, text: str) -> LogLine:
    """The line as evidence: secrets hidden, control characters dropped, cut."""
    body = "".join(char if char.isprintable() else " " for char in redact(text[: MAX_SHOWN * 4])).rstrip()
    return LogLine(number=number, text=body if len(body) <= MAX_SHOWN else body[: MAX_SHOWN - 4] + " ...")


def is_exception(text: str) -> bool:
    """Whether the line carries an exception or an ``error:``."""
    return _EXCEPTION.search(text) is not None


def is_plain(text: str) -> bool:
    """Whether the line is neither a log record below error level nor a usage text, frame or echoed command."""
    return _RECORD.search(text) is None


def degenerate_answer(text: str) -> bool:
    """Whether the line holds a model's answer that only repeats itself, or mixes scripts as no text does."""
    return any(_degenerate(found.group(1)) for found in _ANSWER.finditer(text))


def _degenerate(answer: str) -> bool:
    body = answer.strip()
    if len(body) >= 24 and (found := _REPEAT.search(body)) is not None:
        most = len(found.group(0)) >= 0.7 * len(body)
        if most and found.group(1).strip() not in _RULERS:
            return True
    if len(body) >= 24 and " " not in body.strip() and len(set(body)) <= 2 and body[0] in "!+?":
        return True
    return len(body) >= 24 and len(_scripts(body)) >= 4


def _scripts(body: str) -> set[str]:
    names: dict[str, int] = {}
    for char in body:
        if char.isalpha():
            script = unicodedata.name(char, "UNKNOWN").split(" ")[0]
            names[script] = names.get(script, 0) + 1
    return {name for name, count in names.items() if count >= 2}
