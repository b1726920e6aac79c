"""The bash grammar: syntax trees of scripts, and the words of their commands with places in the file."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.parse.quoting import matching
from planner.parse.source import Field, Mapped
from planner.parse.words import Scope, expand

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["NOT_WORDS", "SyntaxSource", "array_items", "first_error"]

NOT_WORDS = frozenset(
    {"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect", "comment", "&", ";", "\n"}
)
_ESCAPED_BLANK = re.compile(r"((?:[ \t]|\\\n)*)(?:\\[ \t])+")
_QUOTED_COMMENT = re.compile(rb"(?<!\S)`#[^`\n\\]*`(?=\s|$)")
"""A comment between continued lines. To the grammar it has no end, and the words after it would be lost."""
_BRACE_RANGE = re.compile(r"\{(-?\d{1,4})\.\.(-?\d{1,4})\}")
_MOST_RANGE = 64


@functools.cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class SyntaxSource:
    """A script, its tree, and the way from tree nodes to file offsets."""

    def __init__(self, script: Mapped) -> None:
        self.script = script
        data = script.text.encode("utf-8", "surrogatepass")
        plain = _QUOTED_COMMENT.sub(_as_command, data) if b"`#" in data else data
        self.root: Node = _parser().parse(plain).root_node
        self._chars: list[int] | None = None
        if len(data) != len(script.text):
            self._chars = []
            for index, char in enumerate(script.text):
                self._chars.extend([index] * len(char.encode("utf-8", "surrogatepass")))
            self._chars.append(len(script.text))

    def at(self, byte: int) -> int:
        """Index in the script of a byte offset."""
        return byte if self._chars is None else self._chars[min(byte, len(self._chars) - 1)]

    def piece(self, node: Node) -> Mapped:
        """Source text of a node."""
        return self.script[self.at(node.start_byte) : self.at(node.end_byte)]

    def offset(self, byte: int) -> int:
        """Offset in the file of a byte of the script."""
        index, script = self.at(byte), self.script
        if index < len(script.text):
            return script.starts[index]
        return script.ends[-1] if script.text else 0

    def words(self, node: Node) -> list[tuple[int, int]]:
        """Where the words of a command stand in the script, without assignments and redirections."""
        spans: list[tuple[int, int]] = []
        for start_byte, end_byte in sorted(_word_nodes(node)):
            start, end = self.at(start_byte), self.at(end_byte)
            if start >= end:
                continue
            # The grammar takes `\\ ` for a blank; to the shell it is a character of a word.
            escaped = _ESCAPED_BLANK.fullmatch(self.script.text, spans[-1][1], start) if spans else None
            if escaped is not None and escaped.group(1):
                start = escaped.end(1)
            elif escaped is not None or (spans and spans[-1][1] >= start):
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
                continue
            spans.append((start, end))
        return spans

    def expand_words(self, spans: list[tuple[int, int]], scope: Scope) -> tuple[list[Field], list[int]]:
        """The fields of a command; and the offsets of JSON values that lack their quotes."""
        fields: list[Field] = []
        unquoted: list[int] = []
        skip_to = 0
        for start, end in spans:
            if start < skip_to:
                continue
            json_end = self._bare_json(start, spans[-1][1])
            if json_end is not None:
                piece = self.script[start:json_end]
                first, last = piece.span(0, len(piece.text))
                fields.append(Field(piece, first, last, layers=("shell", *piece.layers)))
                unquoted.append(first)
                skip_to = json_end
                continue
            fields.extend(expand(self.script[start:end], scope))
        return fields, unquoted

    def _bare_json(self, start: int, limit: int) -> int | None:
        text = self.script.text
        if not text.startswith('{"', start) and not text.startswith('{ "', start):
            return None
        stop = matching(text, start)
        if stop > limit:
            return None
        try:
            json.loads(text[start:stop])
        except (ValueError, RecursionError):
            return None
        return stop


def _as_command(comment: re.Match[bytes]) -> bytes:
    """A command of the same length in place of the comment."""
    return b"`:" + b" " * (len(comment.group()) - 3) + b"`"


def _word_nodes(node: Node) -> Iterator[tuple[int, int]]:
    for child in node.children:
        kind = child.type
        if kind == "command_name":
            yield child.start_byte, child.end_byte
        elif kind == "file_redirect":
            yield from _after_destination(child)
        elif kind == "heredoc_redirect":
            for part in child.children:
                if part.type == "file_redirect":
                    yield from _after_destination(part)
                elif part.is_named and part.type not in ("heredoc_start", "heredoc_body", "heredoc_end", "pipeline"):
                    yield part.start_byte, part.end_byte
        elif kind not in NOT_WORDS and child.end_byte > child.start_byte:
            yield child.start_byte, child.end_byte


def _after_destination(redirect: Node) -> Iterator[tuple[int, int]]:
    """The grammar gives all words after a redirection to it; only the first is its destination."""
    named = [child for child in redirect.children if child.is_named and child.type != "file_descriptor"]
    for child in named[1:]:
        if child.type != "heredoc_redirect":
            yield child.start_byte, child.end_byte


def array_items(source: SyntaxSource, node: Node, scope: Scope) -> tuple[Field, ...]:
    """The fields of ``( ... )``."""
    spans: list[tuple[int, int]] = []
    for child in node.children:
        if child.type in ("(", ")", "comment", "\n") or child.end_byte <= child.start_byte:
            continue
        start, end = source.at(child.start_byte), source.at(child.end_byte)
        if spans and spans[-1][1] >= start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    fields: list[Field] = []
    for start, end in spans:
        fields.extend(ranged(source.script[start:end], scope))
    return tuple(fields)


def ranged(word: Mapped, scope: Scope) -> list[Field]:
    """The fields of a word in a list, where ``{0..3}`` counts."""
    match = _BRACE_RANGE.fullmatch(word.text)
    if match is None:
        return expand(word, scope)
    first, last = int(match.group(1)), int(match.group(2))
    if abs(last - first) >= _MOST_RANGE:
        return expand(word, scope)
    start, end = word.span(0, len(word.text))
    step = 1 if last >= first else -1
    return [
        Field(Mapped.at(str(value), start, end), start, end, layers=("split",))
        for value in range(first, last + step, step)
    ]


def first_error(root: Node) -> Node | None:
    """The first node that the grammar could not place."""
    node: Node | None = root
    if not root.has_error:
        return None
    while node is not None:
        if node.type == "ERROR" or node.is_missing:
            return node
        node = next((child for child in node.children if child.has_error or child.is_missing), None)
    return root
