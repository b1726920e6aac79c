"""Text that remembers where each of its characters stands in the file.

A launch is often written inside other quotings: a shell command in a YAML block in a heredoc. Each layer is decoded
into a :class:`Mapped`, so that the words of the innermost command keep the offsets of the file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from planner._record import record
from planner.parse.model import Span, Token

__all__ = ["HOLE", "HOLES", "HOLE_MANY", "LONGEST", "Document", "Field", "Mapped", "join"]

HOLE = "\ufdd0"
"""Stands for text that cannot be resolved and is part of one word. A Unicode noncharacter, so no file needs it."""
HOLE_MANY = "\ufdd1"
"""Stands for text that cannot be resolved and may become no word, one or many."""
HOLES = (HOLE, HOLE_MANY)
LONGEST = 100_000
"""Characters of a word that are followed; a longer one is unknown."""


@record(eq=False)
class Mapped:
    """Decoded text; character ``i`` is written at ``starts[i]:ends[i]`` of the file."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    layers: tuple[str, ...] = ()
    """Quotings that an edit of this text must pass, innermost first."""

    @classmethod
    def of(cls, text: str, base: int = 0, layers: tuple[str, ...] = ()) -> Mapped:
        """``text`` as it stands in the file at offset ``base``."""
        return cls(text, range(base, base + len(text)), range(base + 1, base + len(text) + 1), layers)

    @classmethod
    def at(cls, text: str, start: int, end: int, layers: tuple[str, ...] = ()) -> Mapped:
        """``text`` whose every character stands for the same stretch of the file."""
        return cls(text, [start] * len(text), [end] * len(text), layers)

    def __getitem__(self, part: slice) -> Mapped:
        return Mapped(self.text[part], self.starts[part], self.ends[part], self.layers)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the file of ``text[start:end]``, which must not be empty."""
        return self.starts[start], max(self.starts[start], self.ends[end - 1])

    def under(self, layer: str) -> Mapped:
        """The same text with one more quoting inside."""
        return Mapped(self.text, self.starts, self.ends, (layer, *self.layers))

    @property
    def has_hole(self) -> bool:
        """Whether a part of the text is unresolved."""
        return HOLE in self.text or HOLE_MANY in self.text


def join(parts: Sequence[Mapped]) -> Mapped:
    """The parts as one text; the quotings are those of the first part."""
    parts = [part for part in parts if part.text] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    starts: list[int] = []
    ends: list[int] = []
    for part in parts:
        starts.extend(part.starts)
        ends.extend(part.ends)
    return Mapped("".join(part.text for part in parts), starts, ends, parts[0].layers if parts else ())


@record(eq=False)
class Field:
    """One word after expansion, before it becomes a :class:`planner.parse.model.Token`."""

    chars: Mapped
    start: int
    end: int
    by_default: bool = False
    alternatives: tuple[str, ...] = ()
    defined: tuple[int, int] | None = None
    layers: tuple[str, ...] = ()
    bare: bool = True
    """Whether the word has no quotes: such a word may hold a keyword or a hole for many words."""

    @property
    def text(self) -> str | None:
        """The word, or None when a part is unresolved."""
        return None if self.chars.has_hole else self.chars.text

    @property
    def shown(self) -> str:
        """The word with holes, for matching on its known parts."""
        return self.chars.text

    @property
    def lead(self) -> str:
        """Known text before the first hole."""
        text = self.chars.text
        cut = min((at for at in (text.find(HOLE), text.find(HOLE_MANY)) if at >= 0), default=len(text))
        return text[:cut]

    @property
    def splits(self) -> bool:
        """Whether the word may become several words or none."""
        return HOLE_MANY in self.chars.text


@dataclass(repr=False)
class Document:
    """The text of a file and its line table."""

    name: str
    text: str
    _line_starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        self._line_starts = starts

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column (from 1) of an offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Offset of a line and column, both from 0."""
        return self._line_starts[min(line, len(self._line_starts) - 1)] + column

    def span(self, start: int, end: int) -> Span:
        """A span with lines and columns."""
        return Span(start, end, *self.place(start), *self.place(end))

    def token(self, item: Field) -> Token:
        """The token of a word."""
        line, column = self.place(item.start)
        end_line, end_column = self.place(item.end)
        text, shown = item.text, item.shown
        value_start = value_end = None
        if shown.startswith("--") and (equals := shown.find("=")) > 0 and equals + 1 < len(shown):
            value_start, value_end = item.chars.span(equals + 1, len(shown))
            # A quoted value begins with its quote: `--a="b"`.
            raw = self.text[item.start : item.end]
            if "=" in raw and raw.startswith(shown[: equals + 1]):
                value_start, value_end = item.start + equals + 1, item.end
            if not item.start <= value_start <= value_end <= item.end:
                value_start = value_end = None
        return Token(
            text=text,
            raw=self.text[item.start : item.end],
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            known=text is not None,
            start=item.start,
            end=item.end,
            lead="" if text is not None else item.lead,
            value_start=value_start,
            value_end=value_end,
            splits=item.splits,
            by_default=item.by_default,
            alternatives=item.alternatives,
            defined=self.span(*item.defined) if item.defined else None,
            layers=item.layers,
        )

    def whole(self, text: str, start: int, end: int, layers: tuple[str, ...] = ()) -> Token:
        """A token of known text at ``start:end``."""
        return self.token(Field(Mapped.at(text, start, end), start, end, layers=layers))
