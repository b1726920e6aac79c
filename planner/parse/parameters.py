"""Parameter expansion: ``$X``, ``${X:-default}``, ``${ARR[@]}``, ``${X##*/}`` and the rest of that family."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from planner._record import record
from planner.parse.source import Field, Mapped

if TYPE_CHECKING:
    from planner.parse.words import Scope

__all__ = ["Expansion", "Var", "expand_parameter"]

_PARAMETER = re.compile(r"([!#]?)([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(\[[^\]]*\])?", re.DOTALL)
_OPERATOR = re.compile(r":?[-=?+]|%%?|##?|//?|\^\^?|,,?|:|@")
_DEEPEST = 12


@record(eq=False)
class Var:
    """A shell variable. ``value`` is None for an array, ``items`` is None for a scalar."""

    value: Mapped | None = None
    items: tuple[Field, ...] | None = None
    exported: bool = False
    name_at: tuple[int, int] | None = None
    value_at: tuple[int, int] | None = None
    by_default: bool = False
    alternatives: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    prefix: bool = False
    """Set for one command only: ``X=1 command``."""

    def key(self) -> tuple[object, ...]:
        """What two equal variables share."""
        items = None if self.items is None else tuple((item.chars.text, item.start) for item in self.items)
        return (None if self.value is None else self.value.text, items, self.exported)


@record(eq=False)
class Expansion:
    """What an expansion gives: one text, or the items of an array."""

    value: Mapped
    items: tuple[Field, ...] | None = None
    by_default: bool = False
    alternatives: tuple[str, ...] = ()
    defined: tuple[int, int] | None = None

    @classmethod
    def unknown(cls, word: Mapped, at: int, stop: int, hole: str, alternatives: tuple[str, ...] = ()) -> Expansion:
        """A hole that stands for ``word[at:stop]``."""
        start, end = word.span(at, stop)
        return cls(value=Mapped(hole, [start], [end]), alternatives=alternatives)


def expand_parameter(word: Mapped, at: int, stop: int, inner: Mapped, scope: Scope, hole: str, depth: int) -> Expansion:
    """Expands ``word[at:stop]``, whose text between the braces is ``inner``."""
    unknown = Expansion.unknown(word, at, stop, hole)
    match = _PARAMETER.match(inner.text)
    if match is None or depth > _DEEPEST:
        return unknown
    mark, name, index = match.groups()
    rest = inner[match.end() :]
    var = scope.get(name)
    if mark:
        return _marked(word, at, stop, mark, var, index, unknown) if not rest.text else unknown
    if name in ("@", "*") and not rest.text:
        return unknown if var is None or var.items is None else Expansion(Mapped("", [], []), items=var.items)
    if index is not None:
        return _indexed(var, index[1:-1], rest, scope, inner, depth, unknown)
    if var is not None and var.items is not None:
        var = _first(var)
    if not rest.text:
        return unknown if var is None else _value(var, unknown)
    operator = _OPERATOR.match(rest.text)
    if operator is None:
        return unknown
    operand = rest[operator.end() :]
    if operator.group() in (":-", "-", ":=", "=", ":?", "?", ":+", "+"):
        return _defaulted(name, var, operator.group(), operand, scope, depth, unknown)
    if var is None or var.value is None or var.value.has_hole:
        return unknown
    text = _transformed(var.value.text, operator.group(), operand, scope, depth)
    if text is None:
        return unknown
    start, end = word.span(at, stop)
    return Expansion(Mapped.at(text, start, end), by_default=var.by_default)


def _value(var: Var, unknown: Expansion) -> Expansion:
    if var.value is None:
        return unknown
    if var.value.has_hole and len(var.value.text) == 1:
        return replace(unknown, alternatives=var.alternatives)
    return Expansion(var.value, by_default=var.by_default, alternatives=var.alternatives, defined=var.value_at)


def _first(var: Var) -> Var | None:
    return replace(var, value=var.items[0].chars, items=None) if var.items else None


def _marked(
    word: Mapped, at: int, stop: int, mark: str, var: Var | None, index: str | None, unknown: Expansion
) -> Expansion:
    if mark != "#" or var is None:
        return unknown
    start, end = word.span(at, stop)
    if var.items is not None and index in ("[@]", "[*]"):
        exact = not any(item.splits for item in var.items)
        return Expansion(Mapped.at(str(len(var.items)), start, end)) if exact else unknown
    if var.value is not None and index is None and not var.value.has_hole:
        return Expansion(Mapped.at(str(len(var.value.text)), start, end))
    return unknown


def _indexed(
    var: Var | None, index: str, rest: Mapped, scope: Scope, inner: Mapped, depth: int, unknown: Expansion
) -> Expansion:
    from planner.parse.words import expand_one

    if var is None:
        return unknown
    items = var.items
    if items is None:
        if var.value is None:
            return unknown
        at = var.value_at or (0, 0)
        items = (Field(var.value, *at, layers=var.layers),)
    if index in ("@", "*"):
        # ${ARR[@]+"${ARR[@]}"} is how a script under `set -u` passes an array that may be empty.
        if rest.text in ("", "-", ":-") or rest.text.startswith(("+", ":+")):
            return Expansion(Mapped("", [], []), items=items)
        return unknown
    text = expand_one(inner[len(inner.text) - len(rest.text) - 1 - len(index) :][: len(index)], scope, depth + 1).text
    if rest.text or text is None or not re.fullmatch(r"-?\d{1,4}", text.strip()):
        return unknown
    place = int(text)
    if not -len(items) <= place < len(items) or any(item.splits for item in items):
        return unknown
    return Expansion(items[place].chars, defined=(items[place].start, items[place].end))


def _defaulted(
    name: str, var: Var | None, operator: str, operand: Mapped, scope: Scope, depth: int, unknown: Expansion
) -> Expansion:
    from planner.parse.words import expand_one

    colon, kind = operator.startswith(":"), operator[-1]
    value = var.value if var is not None else None
    unresolved = value is not None and value.has_hole
    if kind == "+":
        if value is None or (unresolved and colon):
            return unknown
        if colon and not value.text:
            return Expansion(Mapped("", [], []))
        return _words(operand, scope, depth)
    if kind == "?":
        return _value(var, unknown) if var is not None else unknown
    if var is not None and value is not None:
        if unresolved and len(value.text) == 1 and colon:
            return replace(unknown, alternatives=var.alternatives)
        if value.text or not colon:
            return _value(var, unknown)
    chosen = expand_one(operand, scope, depth + 1) if operand.text else None
    chars = Mapped("", [], []) if chosen is None else chosen.chars
    by_default = var is None or var.by_default
    at = operand.span(0, len(operand.text)) if operand.text else None
    if kind == "=":
        scope.assign(name, Var(chars, by_default=by_default, value_at=at, layers=operand.layers))
    return Expansion(chars, by_default=by_default, defined=at)


def _words(operand: Mapped, scope: Scope, depth: int) -> Expansion:
    from planner.parse.words import expand_one

    if not operand.text:
        return Expansion(Mapped("", [], []))
    return Expansion(expand_one(operand, scope, depth + 1).chars)


def _transformed(text: str, operator: str, operand: Mapped, scope: Scope, depth: int) -> str | None:
    from planner.parse.words import expand_one

    if operator in ("^^", "^", ",,", ","):
        if operand.text:
            return None
        change = str.upper if operator[0] == "^" else str.lower
        return change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
    if operator == ":":
        match = re.fullmatch(r"\s*(\d{1,6}|\s-\d{1,6})(?::(\d{1,6}))?", operand.text)
        if match is None:
            return None
        start = int(match.group(1))
        return text[start:] if match.group(2) is None else text[start:][: int(match.group(2))]
    if operator in ("/", "//"):
        pattern, _, new = operand.text.partition("/")
        if not pattern or re.search(r"[*?\[\]\\$`'\"#%]", pattern) or re.search(r"[\\$`'\"&]", new):
            return None
        return text.replace(pattern, new) if operator == "//" else text.replace(pattern, new, 1)
    if operator in ("#", "##", "%", "%%"):
        trim = expand_one(operand, scope, depth + 1).text if operand.text else ""
        return None if trim is None else _trimmed(text, operator, trim)
    return None


def _trimmed(text: str, operator: str, pattern: str) -> str | None:
    if len(text) > 512 or len(pattern) > 64 or pattern.count("*") > 2:
        return None
    if "[" in pattern or "\\" in pattern:
        return None
    matcher = re.compile("".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern), re.DOTALL)
    cuts = range(len(text) + 1)
    if operator[0] == "#":
        ordered = cuts if operator == "#" else reversed(cuts)
        return next((text[cut:] for cut in ordered if matcher.fullmatch(text[:cut])), text)
    ordered = reversed(cuts) if operator == "%" else cuts
    return next((text[:cut] for cut in ordered if matcher.fullmatch(text[cut:])), text)
