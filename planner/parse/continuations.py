"""Broken line continuations: words that a shell does not give to the server although the writer meant it.

``\\ # comment`` and a comment line between continued lines end the command. What follows begins with a dash and is run
as a command of its own, which fails, while the server starts without those flags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.parse.grammar import SyntaxSource
from planner.parse.model import NoteKind
from planner.parse.setting import Draft, DraftNote
from planner.parse.source import Field
from planner.parse.state import State

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["join_lost_lines"]

_MESSAGES = {
    NoteKind.COMMENT_AFTER_BACKSLASH: "a comment after the backslash ends the command",
    NoteKind.SPACE_AFTER_BACKSLASH: "a blank after the backslash ends the command",
    NoteKind.COMMENT_IN_CONTINUATION: "a comment line inside the continued command ends it",
    NoteKind.MISSING_BACKSLASH: "the line has no backslash, so the command ends here",
    NoteKind.NO_BACKSLASH: "the lines have no backslashes; they are read as one command",
}
_AFTER_BACKSLASH = re.compile(r"\\[ \t]+(#|\r?\n|$)")


def join_lost_lines(
    source: SyntaxSource, nodes: Sequence[Node], drafts: Sequence[Draft], states: Sequence[State]
) -> int:
    """Notes what is lost after ``nodes[0]``, which gave ``drafts``; returns how many of the next nodes it took."""
    first = nodes[0]
    if first.type not in ("command", "redirected_statement", "pipeline", "list"):
        return 0
    text = source.script.text
    end = source.at(first.end_byte)
    taken, spans, last = 0, [], first
    for index, node in enumerate(nodes[1:], start=1):
        if node.type == "comment" or not node.is_named:
            continue
        command = node.children[0] if node.type == "redirected_statement" else node
        if command.type != "command" or not text.startswith("-", source.at(command.start_byte)):
            break
        spans += source.words(command)
        taken, last = index, node
    kind = _kind(text, source.at(first.start_byte), end, spans)
    if kind is None:
        return 0
    words: list[Field] = source.expand_words(spans, states[0])[0] if spans and states else []
    message = _MESSAGES[kind]
    if words and kind is not NoteKind.NO_BACKSLASH:
        message += f": {len(words)} words after it are lost, from {words[0].shown}"
    at = source.offset(min(first.end_byte, last.end_byte) - 1)
    for draft in drafts:
        draft.notes += (DraftNote(kind, message, at),)
        if kind is NoteKind.NO_BACKSLASH:
            draft.argv += tuple(words)
            draft.end = words[-1].end if words else draft.end
        else:
            draft.lost += tuple(words)
    return taken


def _kind(text: str, start: int, end: int, spans: Sequence[tuple[int, int]]) -> NoteKind | None:
    gap = text[end : spans[0][0]] if spans else text[end:].split("\n", 1)[0] + "\n"
    match = _AFTER_BACKSLASH.match(gap.lstrip(" \t"))
    if match is not None and "\\" in gap:
        return NoteKind.COMMENT_AFTER_BACKSLASH if match.group(1) == "#" else NoteKind.SPACE_AFTER_BACKSLASH
    if not spans:
        return None
    whole = text[start : spans[-1][1]]
    if "#" in gap and "\\" in gap:
        return NoteKind.COMMENT_IN_CONTINUATION
    if "\\\n" not in whole and (len(text[start:end].split()) <= 3 or len(whole.splitlines()) > 3):
        return NoteKind.NO_BACKSLASH
    return NoteKind.COMMENT_IN_CONTINUATION if "#" in gap else NoteKind.MISSING_BACKSLASH
