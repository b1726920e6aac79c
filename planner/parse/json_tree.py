"""JSON as a tree with places."""

from __future__ import annotations

import re

from planner.parse.nodes import Listing, Mapping, Scalar, Tree
from planner.parse.source import Mapped

__all__ = ["JsonFault", "read_json"]

_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_WORD = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_DEEPEST = 100


class JsonFault(Exception):
    """Text that is not JSON: a reason and the index where it shows."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason, self.index = reason, index


def read_json(text: Mapped, *, whole: bool = True) -> Tree:
    """The tree of a JSON text.

    Raises:
        JsonFault: the text is not JSON, or more follows and ``whole``.
    """
    reader = _Reader(text)
    tree, at = reader.value(reader.blank(0), 0)
    if whole and reader.blank(at) != len(text.text):
        raise JsonFault("more text after the value", reader.blank(at))
    return tree


class _Reader:
    def __init__(self, text: Mapped) -> None:
        self.mapped, self.text = text, text.text

    def blank(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> tuple[Tree, int]:
        if depth > _DEEPEST:
            raise JsonFault("nested too deeply", at)
        char = self.text[at : at + 1]
        if char == "{":
            return self.mapping(at, depth)
        if char == "[":
            return self.listing(at, depth)
        if char == '"':
            return self.string(at)
        match = _WORD.match(self.text, at)
        if match is None:
            raise JsonFault("a value is missing", at)
        word = match.group()
        kind = "bool" if word in ("true", "false") else "null" if word == "null" else "int"
        if kind == "int" and not re.fullmatch(r"-?\d+", word):
            kind = "float"
        start, end = self.mapped.span(at, match.end())
        piece = Mapped(word, self.mapped.starts[at : match.end()], self.mapped.ends[at : match.end()])
        return Scalar(piece, kind, start, end, ("whole-json", *self.mapped.layers)), match.end()

    def string(self, at: int) -> tuple[Scalar, int]:
        match = _STRING.match(self.text, at)
        if match is None:
            raise JsonFault("a string is not closed", at)
        chars: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        index, stop = at + 1, match.end() - 1
        while index < stop:
            after, char = index + 1, self.text[index]
            if char == "\\":
                after, char = self.escape(index)
            start, end = self.mapped.span(index, after)
            chars.append(char)
            starts.append(start)
            ends.append(end)
            index = after
        start, end = self.mapped.span(at, match.end())
        value = Mapped("".join(chars), starts, ends, ("json", *self.mapped.layers))
        return Scalar(value, "str", start, end, ("whole-json", *self.mapped.layers)), match.end()

    def escape(self, at: int) -> tuple[int, str]:
        char = self.text[at + 1]
        if char in _ESCAPES:
            return at + 2, _ESCAPES[char]
        match = re.match(r"\\u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?", self.text[at : at + 12])
        if match is None:
            raise JsonFault("an unknown escape", at)
        code = int(match.group(1), 16)
        if 0xD800 <= code < 0xDC00 and match.group(2):
            return at + 12, chr(0x10000 + ((code - 0xD800) << 10) + int(match.group(2), 16) - 0xDC00)
        return at + 6, "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def listing(self, at: int, depth: int) -> tuple[Tree, int]:
        items: list[Tree] = []
        index = self.blank(at + 1)
        while self.text[index : index + 1] != "]":
            item, index = self.value(index, depth + 1)
            items.append(item)
            index = self.separator(index, "]")
        return Listing(items, *self.mapped.span(at, index + 1)), index + 1

    def mapping(self, at: int, depth: int) -> tuple[Tree, int]:
        pairs: list[tuple[Scalar, Tree]] = []
        index = self.blank(at + 1)
        while self.text[index : index + 1] != "}":
            if self.text[index : index + 1] != '"':
                raise JsonFault("a key is missing", index)
            key, index = self.string(index)
            index = self.blank(index)
            if self.text[index : index + 1] != ":":
                raise JsonFault("a colon is missing", index)
            value, index = self.value(self.blank(index + 1), depth + 1)
            pairs.append((key, value))
            index = self.separator(index, "}")
        return Mapping(pairs, *self.mapped.span(at, index + 1)), index + 1

    def separator(self, at: int, close: str) -> int:
        index = self.blank(at)
        char = self.text[index : index + 1]
        if char == ",":
            index = self.blank(index + 1)
            if self.text[index : index + 1] == close:
                raise JsonFault("a comma before the end", index)
            return index
        if char != close:
            raise JsonFault(f"a comma or {close} is missing", index)
        return index
