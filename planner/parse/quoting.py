"""Where quotes and brackets of shell text close, and what ``$'...'`` decodes to."""

from __future__ import annotations

import re

from planner.parse.source import Mapped

__all__ = ["ansi_c", "closing", "matching", "unclosed_quote"]

_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_CLOSE = {"(": ")", "{": "}"}
_HEREDOC = re.compile(r"<<-?[ \t]*([\"']?)(\w+)\1")


def closing(text: str, at: int) -> int:
    """Offset of the double quote that closes the one at ``at``; the length of the text when none does."""
    index = at + 1
    while index < len(text):
        char = text[index]
        if char == "\\":
            index += 2
        elif char == '"':
            return index
        elif char == "$" and text[index + 1 : index + 2] in ("(", "{"):
            index = matching(text, index + 1)
        elif char == "`":
            close = text.find("`", index + 1)
            index = len(text) if close < 0 else close + 1
        else:
            index += 1
    return len(text)


def matching(text: str, at: int) -> int:
    """Offset after the bracket that closes the one at ``at`` (``(`` or ``{``); the length of the text if none does."""
    stack: list[str] = []
    index = at
    while index < len(text):
        char = text[index]
        if char == "\\":
            index += 2
            continue
        if stack and stack[-1] == '"':
            if char == '"':
                stack.pop()
            elif char == "$" and text[index + 1 : index + 2] in ("(", "{"):
                index += 1
                stack.append(_CLOSE[text[index]])
        elif char == "'":
            close = text.find("'", index + 1)
            index = len(text) if close < 0 else close
        elif char == '"':
            stack.append('"')
        elif char in _CLOSE:
            stack.append(_CLOSE[char])
        elif stack and char == stack[-1]:
            stack.pop()
        index += 1
        if not stack:
            return index
    return len(text)


def ansi_c(word: Mapped, at: int) -> tuple[Mapped, int]:
    """Decodes ``$'...'`` at ``at``; returns the text and where the word goes on."""
    text = word.text
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    index = at + 2
    while index < len(text) and text[index] != "'":
        stop, value = index + 1, text[index]
        if value == "\\" and stop < len(text):
            stop, value = _ansi_escape(text, stop)
        start, end = word.span(index, stop)
        chars.append(value)
        starts.extend([start] * len(value))
        ends.extend([end] * len(value))
        index = stop
    return Mapped("".join(chars), starts, ends, word.layers), index + 1


def _ansi_escape(text: str, at: int) -> tuple[int, str]:
    char = text[at]
    if char in _ANSI:
        return at + 1, _ANSI[char]
    width = {"x": 2, "u": 4, "U": 8}.get(char)
    if width is not None:
        stop = at + 1
        while stop < len(text) and stop - at - 1 < width and text[stop] in "0123456789abcdefABCDEF":
            stop += 1
        code = int(text[at + 1 : stop], 16) if stop > at + 1 else 0
        return stop, chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return at + 1, char if char in "\\'\"?" else "\\" + char


def unclosed_quote(text: str) -> int | None:
    """Offset of the quote that is still open at the end of a script, or None. Comments and heredocs are passed over."""
    at, heredocs, word_start = 0, [], True
    while at < len(text):
        char = text[at]
        if char == "\\":
            at, word_start = at + 2, False
            continue
        if char == "#" and word_start:
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if char in "\"'":
            ansi = char == "'" and text[at - 1 : at] == "$"
            close = _ansi_close(text, at) if ansi else closing(text, at) if char == '"' else text.find("'", at + 1)
            if close < 0 or close >= len(text):
                return at
            at, word_start = close + 1, False
            continue
        if char == "<" and (match := _HEREDOC.match(text, at)) is not None and text[at - 1 : at] != "<":
            heredocs.append(match.group(2))
            at = match.end()
            continue
        at += 1
        word_start = char in " \t\n;&|("
        if char == "\n":
            while heredocs:
                stop = re.compile(rf"^[ \t]*{re.escape(heredocs.pop(0))}[ \t]*$", re.MULTILINE).search(text, at)
                at = len(text) if stop is None else stop.end()
    return None


def _ansi_close(text: str, at: int) -> int:
    index = at + 1
    while index < len(text) and text[index] != "'":
        index += 2 if text[index] == "\\" else 1
    return index
