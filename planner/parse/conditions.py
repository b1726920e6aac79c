"""Conditions of shell scripts: true, false, or not decidable from the file."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from planner._record import record
from planner.parse.arithmetic import evaluate
from planner.parse.source import Mapped
from planner.parse.state import State
from planner.parse.words import expand_one

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Truth", "condition_text", "judge"]

_NUMERIC: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_SIMPLE = re.compile(r'"?\$\{?([A-Za-z_]\w*)\}?"?$')
_DEEPEST = 40


@record()
class Truth:
    """A verdict (None: not decidable) and what it says of a variable when it holds or does not."""

    value: bool | None
    when_true: tuple[tuple[str, str], ...] = ()
    when_false: tuple[tuple[str, str], ...] = ()

    def __invert__(self) -> Truth:
        return Truth(None if self.value is None else not self.value, self.when_false, self.when_true)


_UNKNOWN = Truth(None)


def condition_text(text: str) -> str:
    """A condition on one line, without its brackets."""
    flat = " ".join(text.split())
    for opening, close in (("[[", "]]"), ("[", "]")):
        if flat.startswith(opening + " ") and flat.endswith(" " + close):
            return flat[len(opening) : -len(close)].strip()
    return flat


def judge(node: Node, state: State, piece: Callable[[Node], Mapped], depth: int = 0) -> Truth:
    """Whether a test holds on a path.

    Args:
        node: a ``test_command`` or a part of one, or a command such as ``true``.
        state: the path.
        piece: gives the source text of a node.
        depth: nesting, to stop at.
    """
    if depth > _DEEPEST:
        return _UNKNOWN
    kind, inner = node.type, [child for child in node.children if child.is_named]
    if kind in ("test_command", "parenthesized_expression", "compound_statement", "subshell"):
        opening = node.children[0].type if node.children else ""
        if opening == "((":
            return _arithmetic(piece(node).text[2:-2], state)
        return judge(inner[0], state, piece, depth + 1) if len(inner) == 1 else _UNKNOWN
    if kind == "negated_command" or (kind == "unary_expression" and node.children[0].type == "!"):
        return ~judge(inner[-1], state, piece, depth + 1) if inner else _UNKNOWN
    if kind == "unary_expression" and len(node.children) >= 2:
        return _unary(piece(node.children[0]).text, piece(node.children[-1]), state)
    if kind == "binary_expression" and len(node.children) >= 3:
        return _binary(node, state, piece, depth)
    if kind == "list" and len(node.children) == 3:
        left, right = (judge(child, state, piece, depth + 1) for child in (node.children[0], node.children[2]))
        return _and(left, right) if node.children[1].type == "&&" else ~_and(~left, ~right)
    if kind == "command":
        return _command(piece(node), state)
    if kind in ("word", "string", "raw_string", "simple_expansion", "expansion", "concatenation", "number"):
        return _unary("-n", piece(node), state)
    return _UNKNOWN


def _and(left: Truth, right: Truth) -> Truth:
    if left.value is False or right.value is False:
        return Truth(False)
    value = True if left.value and right.value else None
    return Truth(value, left.when_true + right.when_true)


def _command(source: Mapped, state: State) -> Truth:
    text = source.text.strip()
    if text in ("true", ":"):
        return Truth(True)
    if text == "false":
        return Truth(False)
    match = re.fullmatch(r"test\s+(-[nz])\s+(\S+)", text) or re.fullmatch(
        r"test\s+(\S+)\s+(=|==|!=|-\w\w)\s+(\S+)", text
    )
    if match is None:
        return _UNKNOWN
    parts = [source[match.start(group) : match.end(group)] for group in range(1, len(match.groups()) + 1)]
    if len(parts) == 2:
        return _unary(parts[0].text, parts[1], state)
    return _compare(parts[0], parts[1].text, parts[2], state)


def _unary(operator: str, operand: Mapped, state: State) -> Truth:
    if operator == "-v":
        return Truth(True) if state.get(operand.text) is not None else _UNKNOWN
    if operator not in ("-n", "-z"):
        return _UNKNOWN
    field = expand_one(operand, state)
    simple = _SIMPLE.match(operand.text)
    empty = ((simple.group(1), ""),) if simple else ()
    if field.text is not None and not (field.by_default and not field.text):
        truth = Truth(bool(field.text))
    else:
        certain = bool(field.shown.replace("\ufdd0", "").replace("\ufdd1", ""))
        truth = Truth(True if certain else None, when_false=empty)
    return truth if operator == "-n" else ~truth


def _binary(node: Node, state: State, piece: Callable[[Node], Mapped], depth: int) -> Truth:
    operator = piece(node.children[1]).text
    left, right = node.children[0], node.children[-1]
    if operator in ("&&", "-a"):
        return _and(judge(left, state, piece, depth + 1), judge(right, state, piece, depth + 1))
    if operator in ("||", "-o"):
        return ~_and(~judge(left, state, piece, depth + 1), ~judge(right, state, piece, depth + 1))
    return _compare(piece(left), operator, piece(right), state)


def _compare(left: Mapped, operator: str, right: Mapped, state: State) -> Truth:
    first, second = expand_one(left, state).text, expand_one(right, state).text
    if operator in ("==", "=", "!="):
        negative = operator == "!="
        if first is not None and second is not None:
            glob = not right.text.startswith(('"', "'"))
            same = fnmatch.fnmatchcase(first, second) if glob and len(second) < 200 else first == second
            return Truth(same != negative)
        simple = _SIMPLE.match(left.text)
        literal = second is not None and not re.search(r"[*?\[]", second)
        bound = ((simple.group(1), second),) if simple and second is not None and literal else ()
        return ~Truth(None, when_true=bound) if negative else Truth(None, when_true=bound)
    if operator in _NUMERIC and first is not None and second is not None:
        numbers = [evaluate(text, lambda _: None) for text in (first, second)]
        if numbers[0] is not None and numbers[1] is not None:
            return Truth(_NUMERIC[operator](numbers[0], numbers[1]))
        return _UNKNOWN
    if operator in _NUMERIC and operator == "-eq" and second is not None and (simple := _SIMPLE.match(left.text)):
        return Truth(None, when_true=((simple.group(1), second),))
    return _UNKNOWN


def _arithmetic(text: str, state: State) -> Truth:
    def lookup(name: str) -> str | None:
        var = state.get(name)
        return None if var is None or var.value is None or var.value.has_hole else var.value.text

    value = evaluate(text, lookup)
    return _UNKNOWN if value is None else Truth(bool(value))
