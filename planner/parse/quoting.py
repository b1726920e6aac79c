"""Where quotes and brackets of shell text close, and what ``$'...'`` decodes to."""

from __future__ import annotations

from planner.parse.source import Mapped

__all__ = ["ansi_c", "closing", "matching"]

_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_CLOSE = {"(": ")", "{": "}"}


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
    """Offset after the bracket that closes the one at ``at`` (``(`` or ``{``); the length of the text when none does."""
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
