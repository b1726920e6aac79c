"""Literal values of Python source, with places. What is not a literal, or a name set once to one, is unknown."""

from __future__ import annotations

import ast
import json
from typing import TypeGuard

from planner.parse.source import HOLE, HOLE_MANY, Document, Field, Mapped, join

__all__ = ["PythonText", "Values"]

_ESCAPES = "abfnrtv\\'\""
_DEEPEST = 20
_MOST_PARTS = 20_000
"""Parts of strings and lists that are followed in one file: names that name each other can double without end."""


class PythonText:
    """Source text, and the way from ``ast`` positions (line, UTF-8 column) to file offsets."""

    def __init__(self, text: Mapped) -> None:
        self.mapped = text
        self.document = Document("", text.text)
        self.ascii = text.text.isascii()
        self.lines = [] if self.ascii else text.text.split("\n")

    def index(self, line: int, column: int) -> int:
        """Index in the text of a line from 0 and a UTF-8 column."""
        if not self.ascii and line < len(self.lines):
            column = len(self.lines[line].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))
        return min(self.document.offset(line, column), len(self.mapped.text))

    def offset(self, line: int, column: int) -> int:
        """Offset in the file of a place."""
        index, text = self.index(line, column), self.mapped
        if index < len(text.text):
            return text.starts[index]
        return text.ends[-1] if text.text else 0

    def bounds(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        """Indices in the text of a node."""
        end_line = node.end_lineno if node.end_lineno is not None else node.lineno
        end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset
        return self.index(node.lineno - 1, node.col_offset), self.index(end_line - 1, end_column)

    def span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        """Offsets in the file of a node."""
        start, end = self.bounds(node)
        return self.mapped.span(start, end) if start < end else (0, 0)


class Values:
    """Evaluates literals."""

    def __init__(self, source: PythonText) -> None:
        self.source = source
        self.names: dict[str, ast.expr | None] = {}
        self.left = _MOST_PARTS
        self.grown: dict[str, list[tuple[ast.expr, bool, bool]]] = {}

    def learn(self, tree: ast.Module) -> None:
        """Takes note of names that are set exactly once, and of lists that grow."""
        conditional: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.If | ast.For | ast.While | ast.Try | ast.With):
                conditional.update(id(part) for part in ast.walk(node) if part is not node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._learn(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._learn(node.target, node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                if isinstance(node.op, ast.Add) and isinstance(node.value, ast.List | ast.Tuple):
                    self._grow(node.target.id, node.value, True, id(node) in conditional)
                else:
                    self.names[node.target.id] = None
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._learn_growth(node.value, id(node) in conditional)
            elif isinstance(node, ast.For | ast.comprehension):
                self._learn(node.target, None)
            elif isinstance(node, ast.arg):
                self.names[node.arg] = None

    def _learn(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = None if target.id in self.names else value
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._learn(part, None)

    def _learn_growth(self, call: ast.Call, conditional: bool) -> None:
        func = call.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or len(call.args) != 1:
            return
        if func.attr in ("extend", "append"):
            self._grow(func.value.id, call.args[0], func.attr == "extend", conditional)

    def _grow(self, name: str, value: ast.expr, many: bool, conditional: bool) -> None:
        self.grown.setdefault(name, []).append((value, many, conditional))

    def resolve(self, node: ast.expr, depth: int = 0) -> ast.expr:
        """The literal behind a name, or the node itself."""
        if isinstance(node, ast.Name) and depth < _DEEPEST:
            value = self.names.get(node.id)
            if value is not None:
                return self.resolve(value, depth + 1)
        return node

    def literal(self, node: ast.expr) -> object:
        """A number, string or truth value; None for anything else."""
        node = self.resolve(node)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            return -value if isinstance(value, int | float) and not isinstance(value, bool) else None
        return None

    def pairs(self, node: ast.expr) -> list[tuple[ast.expr | None, ast.expr]] | None:
        """Keys and values of a dictionary display."""
        node = self.resolve(node)
        if isinstance(node, ast.Dict):
            return list(zip(node.keys, node.values, strict=True))
        return None

    def field(self, node: ast.expr, depth: int = 0) -> Field:
        """One word, at the place where the expression is used."""
        start, end = self.source.span(node)
        found = self.resolve(node)
        defined = self.source.span(found) if found is not node else None
        chars = self.text(found, depth)
        if chars is None:
            value = self.literal(found)
            if isinstance(value, int | float) and not isinstance(value, bool):
                chars = Mapped.at(self._number(found), *(defined or (start, end)))
            elif isinstance(found, ast.Call) and getattr(found.func, "id", "") == "str" and len(found.args) == 1:
                inner = self.field(found.args[0], depth + 1) if depth < _DEEPEST else None
                chars = None if inner is None else inner.chars
            elif isinstance(found, ast.Dict):
                chars = self._json(found, start, end)
        if chars is None:
            return Field(Mapped(HOLE, [start], [end]), start, end, layers=("whole-python",))
        return Field(chars, start, end, defined=defined, layers=("whole-python",))

    def _number(self, node: ast.expr) -> str:
        start, end = self.source.bounds(node)
        raw = self.source.mapped.text[start:end].replace(" ", "").replace("_", "")
        value = self.literal(node)
        return raw if raw.lstrip("-").replace(".", "", 1).isdigit() else str(value)

    def _json(self, node: ast.Dict, start: int, end: int) -> Mapped | None:
        try:
            return Mapped.at(json.dumps(ast.literal_eval(node)), start, end, ("fixed",))
        except (ValueError, TypeError, RecursionError, SyntaxError):
            return None

    def words(self, node: ast.expr, depth: int = 0) -> list[Field] | None:
        """The words of a list, of lists added up, or None when it is no list."""
        found = self.resolve(node)
        self.left -= 1
        if depth > _DEEPEST or self.left < 0:
            return None
        if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Add):
            left, right = self.words(found.left, depth + 1), self.words(found.right, depth + 1)
            if left is None and right is None:
                return None
            return [*(left or [self._many(found.left)]), *(right or [self._many(found.right)])]
        if not isinstance(found, ast.List | ast.Tuple):
            return None
        fields: list[Field] = []
        for item in found.elts:
            if isinstance(item, ast.Starred):
                fields += self.words(item.value, depth + 1) or [self._many(item.value)]
            else:
                fields.append(self.field(item))
        return fields

    def appended(self, node: ast.expr) -> list[Field]:
        """What the file adds later to the name that holds the list; what it adds on a condition is unknown."""
        name = next((name for name, value in self.names.items() if value is node), None)
        fields: list[Field] = []
        for value, many, conditional in self.grown.get(name or "", []):
            if conditional:
                fields.append(self._many(value))
            elif many:
                fields += self.words(value) or [self._many(value)]
            else:
                fields.append(self.field(value))
        return fields

    def _many(self, node: ast.expr) -> Field:
        start, end = self.source.span(node)
        return Field(Mapped(HOLE_MANY, [start], [end]), start, end)

    def text(self, node: ast.expr, depth: int = 0) -> Mapped | None:
        """A string with places; parts of an f-string that are not literal are holes."""
        self.left -= 1
        if self.left < 0:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._string(node, node.value)
        if isinstance(node, ast.JoinedStr) and depth < _DEEPEST:
            return self._formatted(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth < _DEEPEST:
            left, right = self.text(self.resolve(node.left), depth + 1), self.text(self.resolve(node.right), depth + 1)
            if left is None and right is None:
                return None
            return join([left or self._many(node.left).chars, right or self._many(node.right).chars])
        return None

    def _string(self, node: ast.expr, value: str) -> Mapped:
        start, end = self.source.bounds(node)
        raw = self.source.mapped.text[start:end]
        at = raw.find(value) if value and "\\" not in raw else -1
        if at >= 0:
            piece = self.source.mapped[start + at : start + at + len(value)]
            return Mapped(value, piece.starts, piece.ends, ("python", *self.source.mapped.layers))
        return self._walked(raw, start, value)

    def _walked(self, raw: str, base: int, value: str) -> Mapped:
        """Finds the characters of a string that has escapes or is written in several pieces."""
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        mapped = self.source.mapped
        for char in value:
            found = _written(raw, at, char)
            if found is None:
                span = mapped.span(base, base + len(raw)) if raw else (0, 0)
                return Mapped.at(value, *span, ("python",))
            first, at = found
            start, end = mapped.span(base + first, base + at)
            starts.append(start)
            ends.append(end)
        return Mapped(value, starts, ends, ("python", *mapped.layers))

    def _formatted(self, node: ast.JoinedStr) -> Mapped:
        start, end = self.source.bounds(node)
        raw = self.source.mapped.text[start:end]
        at = 0
        parts: list[Mapped] = []
        for piece in node.values:
            if isinstance(piece, ast.Constant) and isinstance(piece.value, str):
                found = raw.find(piece.value, at)
                if found >= 0:
                    parts.append(self.source.mapped[start + found : start + found + len(piece.value)].under("python"))
                    at = found + len(piece.value)
                else:
                    parts.append(Mapped.at(piece.value, *self.source.mapped.span(start, end), ("fixed",)))
            else:
                inner = self._inserted(piece)
                span = self.source.mapped.span(start, end)
                brace = raw.find("{", at)
                close = raw.find("}", brace)
                if 0 <= brace < close:
                    span = self.source.mapped.span(start + brace, start + close + 1)
                    at = close + 1
                parts.append(
                    Mapped(HOLE, [span[0]], [span[1]]) if inner is None else Mapped.at(inner, *span, ("fixed",))
                )
        return join(parts) if parts else Mapped("", [], [])

    def _inserted(self, piece: ast.expr) -> str | None:
        if not isinstance(piece, ast.FormattedValue) or piece.format_spec is not None or piece.conversion != -1:
            return None
        value = self.literal(piece.value)
        return str(value) if _is_plain(value) else None


def _is_plain(value: object) -> TypeGuard[int | float | str]:
    return isinstance(value, int | float | str)


def _written(raw: str, at: int, char: str) -> tuple[int, int] | None:
    """Where ``char`` is written at or after ``at``; quotes, prefixes and blanks between pieces are passed over."""
    while at < len(raw):
        here = raw[at]
        if here == "\\":
            following = raw[at + 1 : at + 2]
            if following == "\n":
                at += 2
                continue
            if following in _ESCAPES and following:
                return at, at + 2
            width = {"x": 4, "u": 6, "U": 10}.get(following, 0)
            return (at, at + width) if width else (at, at + 1) if char == "\\" else None
        if here == char:
            return at, at + 1
        if here not in "\"' \t\r\nrRbBuUfF()+#":
            return None
        at += 1
    return None
