"""Heredocs that write or feed a script, a compose file or a manifest."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.parse.setting import MENTION, Setting
from planner.parse.source import HOLE, Mapped, join
from planner.parse.state import State
from planner.parse.words import expand_one

if TYPE_CHECKING:
    from tree_sitter import Node

    from planner.parse.shell import Shell

__all__ = ["read_heredocs"]

_EXPANSION = re.compile(r"\\[\\$`\n]|\$\(\(.*?\)\)|\$\([^)\n]*\)|\$\{[^}\n]*\}|\$[A-Za-z_0-9@#?*]\w*|`[^`\n]*`")


def read_heredocs(shell: Shell, node: Node, body: Node, state: State) -> None:
    """Reads the heredocs of a redirected statement by what they seem to be."""
    for child in node.children:
        if child.type != "heredoc_redirect":
            continue
        content = next((part for part in child.children if part.type == "heredoc_body"), None)
        start = next((part for part in child.children if part.type == "heredoc_start"), None)
        if content is None or start is None:
            continue
        text = _body(shell, content, start)
        if MENTION.search(text.text) is None:
            continue
        quoted = any(char in shell.source.piece(start).text for char in "\"'\\")
        _read(
            shell,
            text.under("heredoc-raw") if quoted else _expanded(text, state),
            _destination(shell, node, body),
            state,
        )


def _body(shell: Shell, content: Node, start: Node) -> Mapped:
    script = shell.source.script
    first = shell.source.at(content.start_byte)
    # The grammar may begin the body after leading tabs or blanks: begin at the line.
    line = script.text.rfind("\n", 0, first) + 1
    if line >= shell.source.at(start.end_byte):
        first = line
    return script[first : shell.source.at(content.end_byte)]


def _destination(shell: Shell, node: Node, body: Node) -> str:
    """Name of the file that the heredoc is written to, or empty."""
    source = shell.source.script.text[shell.source.at(node.start_byte) : shell.source.at(node.end_byte)].split("\n", 1)[
        0
    ]
    match = re.search(r"(?:>>?|\btee(?:\s+-a)?)\s*[\"']?([^\s\"'<>|;&]+)", source)
    return match.group(1) if match else ""


def _expanded(text: Mapped, state: State) -> Mapped:
    """The text of a heredoc whose delimiter is not quoted: the outer shell expands variables in it."""
    parts: list[Mapped] = []
    at = 0
    for match in _EXPANSION.finditer(text.text):
        parts.append(text[at : match.start()].under("heredoc"))
        piece = match.group()
        start, end = text.span(match.start(), match.end())
        if piece.startswith("\\"):
            if piece != "\\\n":
                parts.append(Mapped(piece[1], [start], [end], ("heredoc", *text.layers)))
            else:
                parts.append(text[match.start() : match.end()].under("heredoc"))
        else:
            field = expand_one(text[match.start() : match.end()], state)
            value = field.text
            parts.append(Mapped(HOLE, [start], [end]) if value is None else Mapped.at(value, start, end, ("fixed",)))
        at = match.end()
    parts.append(text[at:].under("heredoc"))
    return join(parts)


def _read(shell: Shell, text: Mapped, destination: str, state: State) -> None:
    from planner.parse.detect import form_of
    from planner.parse.forms import read_form
    from planner.parse.model import Form

    form = form_of(destination, text.text) or Form.SHELL
    setting = Setting(form=form, condition=(*shell.setting.condition, *state.conditions), name=shell.setting.name)
    if form is Form.SHELL:
        inner = shell.setting if not destination else replace(shell.setting, env=())
        inner = replace(
            inner.with_env([item for item in state.env(shell.used) if item.exported]), condition=setting.condition
        )
        shell.out.script(text, inner, shell.depth)
    elif shell.depth < 6:
        # The outer shell may put lines in: what it writes is known only in part.
        shell.out.quiet += 1
        try:
            read_form(form, text, setting, shell.out, shell.depth + 1)
        finally:
            shell.out.quiet -= 1
