"""Words of a shell command: quoting, parameter expansion and field splitting, each character with its origin.

Expansion never runs anything. A variable that the file does not assign is unknown; ``${X:-default}`` of such a variable
is its default, because the file is reviewed as it runs with nothing set from outside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Protocol

from planner.parse.arithmetic import evaluate
from planner.parse.parameters import Expansion, Var, expand_parameter
from planner.parse.quoting import ansi_c, closing, matching
from planner.parse.source import HOLE, HOLE_MANY, LONGEST, Field, Mapped, join

__all__ = ["Scope", "Var", "expand", "expand_one", "known_text"]

_PLAIN = re.compile(r"[\w./:=,+@%\[\]^~{}?*!#-]*")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!-]")
_SPACE = " \t\n"
_GAP = 12
"""Most characters of quoting between two characters of one word."""


class Scope(Protocol):
    """Variables as expansion sees them."""

    def get(self, name: str) -> Var | None:
        """The variable, or None when the file does not assign it."""

    def assign(self, name: str, value: Var) -> None:
        """Keeps a value, for ``${X:=default}``."""


@dataclass(repr=False)
class _Building:
    """The fields of one word while it is read."""

    parts: list[Mapped] = field(default_factory=list)
    quoted: bool = False
    fields: list[tuple[list[Mapped], bool, Field | None]] = field(default_factory=list)
    by_default: bool = False
    alternatives: tuple[str, ...] = ()
    lone: Expansion | None = None
    n_parts: int = 0
    size: int = 0

    def add(self, part: Mapped, quoted: bool) -> None:
        self.quoted = self.quoted or quoted
        self.n_parts += 1
        self.size += len(part.text)
        if self.size > LONGEST:
            # `A=$A$A` doubles: past this length the text is not followed.
            part = Mapped(HOLE, [part.starts[0]], [part.ends[0]]) if self.size - len(part.text) <= LONGEST else part[:0]
        if part.text:
            self.parts.append(part)

    def cut(self) -> None:
        if self.parts or self.quoted:
            self.fields.append((self.parts, self.quoted, None))
        self.parts, self.quoted = [], False

    def item(self, item: Field) -> None:
        if self.parts:
            self.cut()
        self.quoted = False
        self.fields.append(([], True, item))


def expand(word: Mapped, scope: Scope, *, split: bool = True, depth: int = 0) -> list[Field]:
    """The fields that a word becomes.

    Args:
        word: source text of the word, quotes included.
        scope: the variables.
        split: whether unquoted expansions are split at blanks (an assignment does not split).
        depth: how deep the word stands in other expansions.
    """
    if not word.text:
        return []
    start, end = word.span(0, len(word.text))
    layers = ("shell", *word.layers)
    if _PLAIN.fullmatch(word.text):
        return [Field(word, start, end, layers=layers)]
    building = _Building()
    _read(word, scope, building, split, depth)
    parts, quoted = building.parts, building.quoted
    if not building.fields:
        if not parts and not quoted:
            return []
        chars = join(parts) if parts else Mapped("", [], [], layers)
        defined = building.lone.defined if building.lone is not None and building.n_parts == 1 else None
        return [
            Field(chars, start, end, building.by_default, building.alternatives, defined, layers, bare=not quoted)
        ]  # fmt: skip
    building.cut()
    return [_finish(fields, item, (start, end), building, layers) for fields, _, item in building.fields]


def _finish(
    parts: list[Mapped], item: Field | None, use: tuple[int, int], building: _Building, layers: tuple[str, ...]
) -> Field:
    if item is not None:
        return item
    if not parts:
        return Field(Mapped("", [], [], layers), *use, layers=layers)
    chars = join(parts)
    start, end = chars.starts[0], chars.ends[-1]
    apart = any(
        not sooner <= later <= sooner + _GAP for sooner, later in zip(chars.starts, chars.starts[1:], strict=False)
    )
    if apart or start >= end:
        start, end = use
    # Inside a longer string no quotes can be added: only plain words may be written there.
    return Field(chars, start, end, building.by_default, layers=("split", *chars.layers))


def expand_one(word: Mapped, scope: Scope, depth: int = 0) -> Field:
    """The word as one field without splitting, as in an assignment."""
    fields = expand(word, scope, split=False, depth=depth)
    start, end = word.span(0, len(word.text)) if word.text else (0, 0)
    if len(fields) == 1:
        return fields[0]
    chars: list[Mapped] = []
    for index, item in enumerate(fields):
        if index:
            chars.append(Mapped.at(" ", item.start, item.start))
        chars.append(item.chars)
    value = join(chars) if chars else Mapped("", [], [], ("shell", *word.layers))
    return Field(value, start, end, layers=("shell", *word.layers))


def known_text(word: Mapped, scope: Scope) -> str | None:
    """Text of a word without splitting, or None when it is unknown."""
    return expand_one(word, scope).text


def _read(word: Mapped, scope: Scope, building: _Building, split: bool, depth: int) -> None:
    text, at, n = word.text, 0, len(word.text)
    while at < n:
        char = text[at]
        if char == "\\":
            if at + 1 < n and text[at + 1] == "\n":
                at += 2
                continue
            building.add(_escaped(word, at, ""), quoted=True)
            at += 2
        elif char == "'":
            close = text.find("'", at + 1)
            close = n if close < 0 else close
            building.add(word[at + 1 : close].under("shell-single"), quoted=True)
            at = close + 1
        elif char == '"':
            close = closing(text, at)
            building.add(Mapped("", [], []), quoted=True)
            building.n_parts -= 1
            _read_quoted(word[at + 1 : close], scope, building, depth)
            at = close + 1
        elif char == "$" and text.startswith("$'", at):
            decoded, at = ansi_c(word, at)
            building.add(decoded.under("shell-ansi"), quoted=True)
        elif char == "$" and text.startswith('$"', at):
            at += 1
        elif char in "$`":
            at = _expansion(word, at, scope, building, quoted=not split, split=split, depth=depth)
        else:
            stop = at + 1
            while stop < n and text[stop] not in "\\'\"$`":
                stop += 1
            building.add(word[at:stop], quoted=False)
            at = stop


def _escaped(word: Mapped, at: int, only: str) -> Mapped:
    """The character after the backslash at ``at``; the backslash too when it does not escape it (``only``)."""
    text = word.text
    if at + 1 >= len(text):
        return word[at : at + 1]
    if only and text[at + 1] not in only:
        return word[at : at + 2]
    start, end = word.span(at, at + 2)
    return Mapped(text[at + 1], [start], [end], word.layers)


def _read_quoted(word: Mapped, scope: Scope, building: _Building, depth: int) -> None:
    text, at, n = word.text, 0, len(word.text)
    while at < n:
        char = text[at]
        if char == "\\":
            if text.startswith("\\\n", at):
                at += 2
                continue
            building.add(_escaped(word, at, '$`"\\').under("shell-double"), quoted=True)
            at += 2
        elif char in "$`":
            at = _expansion(word, at, scope, building, quoted=True, split=False, depth=depth)
        else:
            stop = at + 1
            while stop < n and text[stop] not in "\\$`":
                stop += 1
            building.add(word[at:stop].under("shell-double"), quoted=True)
            at = stop


def _expansion(
    word: Mapped, at: int, scope: Scope, building: _Building, *, quoted: bool, split: bool, depth: int
) -> int:
    """Reads the expansion at ``at`` and returns where the text goes on."""
    text = word.text
    hole = HOLE if quoted else HOLE_MANY
    expansion: Expansion
    if text[at] == "`":
        close = text.find("`", at + 1)
        stop = len(text) if close < 0 else close + 1
        expansion = _command(word, at, stop, text[at + 1 : stop - 1], hole)
    elif text.startswith("$((", at):
        stop = matching(text, at + 1)
        expansion = _arithmetic(word, at, stop, scope, hole)
    elif text.startswith("$(", at):
        stop = matching(text, at + 1)
        expansion = _command(word, at, stop, text[at + 2 : stop - 1], hole)
    elif text.startswith("${", at):
        stop = matching(text, at + 1)
        inner = word[at + 2 : max(at + 2, stop - 1)]
        expansion = expand_parameter(word, at, stop, inner, scope, hole, depth)
    else:
        match = _NAME.match(text, at + 1)
        if match is None:
            building.add(word[at : at + 1], quoted=quoted)
            return at + 1
        stop = match.end()
        expansion = expand_parameter(word, at, stop, word[at + 1 : stop], scope, hole, depth)
    _place(expansion, building, quoted=quoted, split=split)
    return stop


def _command(word: Mapped, at: int, stop: int, inner: str, hole: str) -> Expansion:
    """What a command prints is unknown; a comment alone, written between continued lines, prints nothing."""
    if all(not line or line.startswith("#") for line in map(str.strip, inner.splitlines())):
        return Expansion(Mapped.at("", *word.span(at, stop)))
    return Expansion.unknown(word, at, stop, hole)


def _arithmetic(word: Mapped, at: int, stop: int, scope: Scope, hole: str) -> Expansion:
    by_default = False

    def lookup(name: str) -> str | None:
        nonlocal by_default
        var = scope.get(name)
        by_default = by_default or (var is not None and var.by_default)
        return None if var is None or var.value is None or var.value.has_hole else var.value.text

    value = evaluate(word.text[at + 3 : max(at + 3, stop - 2)], lookup)
    if value is None:
        return Expansion.unknown(word, at, stop, hole)
    start, end = word.span(at, stop)
    return Expansion(value=Mapped.at(str(value), start, end), by_default=by_default)


def _place(expansion: Expansion, building: _Building, *, quoted: bool, split: bool) -> None:
    building.by_default = building.by_default or expansion.by_default
    building.alternatives = expansion.alternatives
    if expansion.items is not None:
        for index, item in enumerate(expansion.items):
            if not quoted and not item.chars.text:
                continue
            if index or not building.parts:
                building.item(item)
            else:
                building.add(item.chars, quoted=True)
        if not expansion.items and quoted and not building.parts:
            # "${EMPTY[@]}" becomes no word at all, unlike "$EMPTY".
            building.quoted = False
        return
    value = expansion.value
    if quoted or not split:
        building.lone = expansion
        building.add(value, quoted=quoted)
        return
    _split(value, building, expansion)


def _split(value: Mapped, building: _Building, expansion: Expansion) -> None:
    if HOLE in value.text:
        value = replace(value, text=value.text.replace(HOLE, HOLE_MANY))
    text = value.text
    if not any(char in text for char in _SPACE):
        building.lone = expansion
        building.add(value, quoted=False)
        return
    at = 0
    while at < len(text):
        if text[at] in _SPACE:
            building.cut()
            at += 1
            continue
        stop = at
        while stop < len(text) and text[stop] not in _SPACE:
            stop += 1
        if not building.fields and not building.parts and stop == len(text) and not text[:at].strip():
            building.lone = None
        building.add(value[at:stop], quoted=False)
        at = stop
    if text[-1] in _SPACE:
        building.cut()
