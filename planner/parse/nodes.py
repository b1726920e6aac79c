"""Trees of YAML and JSON with the place of every scalar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from planner._record import record
from planner.parse.source import Field, Mapped

__all__ = ["Listing", "Mapping", "Scalar", "Tree", "align"]

_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_WIDTHS = {"x": 2, "u": 4, "U": 8}


@record(eq=False)
class Scalar:
    """A leaf. ``kind`` is one of str, int, float, bool, null."""

    value: Mapped
    kind: str
    start: int
    end: int
    layers: tuple[str, ...]

    @property
    def text(self) -> str:
        """The decoded text."""
        return self.value.text

    def field(self) -> Field:
        """The leaf as one word."""
        return Field(self.value, self.start, self.end, layers=self.layers)


@dataclass(eq=False, slots=True)
class Listing:
    """A sequence."""

    items: list[Tree] = field(default_factory=list)
    start: int = 0
    end: int = 0


@dataclass(eq=False, slots=True)
class Mapping:
    """A mapping in order. ``<<`` merges are looked through by :meth:`get` and :meth:`pairs`."""

    own: list[tuple[Scalar, Tree]] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def pairs(self) -> Iterator[tuple[Scalar, Tree]]:
        """Keys and values, own ones first, then those of merged mappings."""
        seen: set[str] = set()
        merged: set[int] = set()
        waiting: list[Mapping] = [self]
        while waiting:
            mapping = waiting.pop(0)
            if id(mapping) in merged:
                continue
            merged.add(id(mapping))
            for key, value in mapping.own:
                if key.text == "<<":
                    bases = value.items if isinstance(value, Listing) else [value]
                    waiting += [base for base in bases if isinstance(base, Mapping)]
                elif key.text not in seen or mapping is self:
                    seen.add(key.text)
                    yield key, value

    def get(self, *names: str) -> Tree | None:
        """The value of the first of ``names`` that is a key."""
        for key, value in self.pairs():
            if key.text in names:
                return value
        return None

    def text(self, *names: str) -> str | None:
        """The text of a scalar value."""
        value = self.get(*names)
        return value.text if isinstance(value, Scalar) and value.kind != "null" else None


Tree = Scalar | Listing | Mapping


def align(raw: str, base: int, value: str, style: str, layers: tuple[str, ...]) -> Mapped:
    """``value`` with the place of each character in ``raw``, the text that it was decoded from.

    Args:
        raw: source of the scalar, quotes or block header included.
        base: offset of ``raw`` in the file.
        value: the decoded text.
        style: ``plain``, ``single``, ``double`` or ``block``.
        layers: quotings of the text around.
    """
    layer = (f"yaml-{style}", *layers)
    if raw == value:
        return Mapped.of(value, base, layer)
    at = raw.find("\n") + 1 if style == "block" else int(style in ("single", "double"))
    starts: list[int] = []
    ends: list[int] = []
    for char in value:
        stop = _next(raw, at, char, style)
        if stop is None:
            return Mapped.at(value, base, base + len(raw), layer)
        first, at = stop
        starts.append(base + first)
        ends.append(base + at)
    return Mapped(value, starts, ends, layer)


def _next(raw: str, at: int, char: str, style: str) -> tuple[int, int] | None:
    """Where ``char`` is written at or after ``at``, over indentation and folded line ends."""
    while at < len(raw):
        here = raw[at]
        if style == "double" and here == "\\":
            following = raw[at + 1 : at + 2]
            if following in ("\n", "\r"):
                at += 2
                continue
            width = _WIDTHS.get(following)
            if width is not None:
                return at, at + 2 + width
            return (at, at + 2) if _ESCAPES.get(following) == char else None
        if style == "single" and char == "'" and raw.startswith("''", at):
            return at, at + 2
        if here == char or (char in " \n" and here in "\r\n"):
            return at, at + 1
        if here not in " \t\r\n":
            return None
        at += 1
    return None
