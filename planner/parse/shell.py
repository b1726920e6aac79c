"""Shell scripts, followed along every branch without running anything.

A condition that the file decides is followed; otherwise both branches are, and a launch whose words differ between them
is given once for each, with its conditions. :func:`run_script` is the way in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.parse.continuations import join_lost_lines
from planner.parse.flow import Flow
from planner.parse.grammar import SyntaxSource, array_items, first_error
from planner.parse.heredocs import read_heredocs
from planner.parse.launchers import read_words
from planner.parse.model import NoteKind
from planner.parse.parameters import Var
from planner.parse.quoting import unclosed_quote
from planner.parse.setting import MENTION, Collector, Draft, DraftNote, Setting
from planner.parse.source import HOLE, HOLE_MANY, Field, Mapped
from planner.parse.state import State, reaching_names, referenced_names
from planner.parse.words import expand_one

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["run_script"]

_MOST_STEPS = 20_000
_DEEPEST_CALL = 6
_INDIRECT = re.compile(
    r"(?:\w+=\S*\s+)*(?:exec\s+|nohup\s+|env\s+)*(?:[\"$]|eval\b|(?:ba|z)?sh\b|srun\b|docker\b|ssh\b|\w+\s+[\"$])"
)
"""Commands that may run what a variable holds."""
_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})


def run_script(script: Mapped, setting: Setting, out: Collector, depth: int = 0) -> None:
    """Adds the launches of shell text to ``out``."""
    Shell(script, setting, out, depth).run()


class Shell(Flow):
    """Follows one script. Branches are in :class:`planner.parse.flow.Flow`; this class knows commands."""

    def __init__(self, script: Mapped, setting: Setting, out: Collector, depth: int) -> None:
        self.source = SyntaxSource(script)
        self.setting, self.out, self.depth = setting, out, depth
        self.used = referenced_names(script.text)
        self.names = self._names_of_launches()
        self.functions: dict[str, Node] = {}
        self.called: set[str] = set()
        self.call_depth = 0
        self.steps = 0
        self.steps_left = _MOST_STEPS

    def run(self) -> None:
        """Follows the script from its first line."""
        state = State()
        for item in self.setting.env:
            if item.exported:
                value = item.value
                place = (value.start, value.end)
                state.vars[item.name] = Var(value.chars, exported=True, value_at=place, layers=value.layers)
        before = len(self.out.drafts)
        last = self.block(self.source.root.children, [state])
        self._uncalled(last[0] if last else state)
        if len(self.out.drafts) == before:
            self._unused_strings(last[0] if last else state)
        self._report_error(before)

    def _names_of_launches(self) -> frozenset[str]:
        """Variables that can reach a launch: only they keep two branches apart."""
        seeds: set[str] = set()
        assigned: list[tuple[str, str]] = []
        waiting = [self.source.root]
        while waiting:
            node = waiting.pop()
            if node.type == "variable_assignment":
                text = self.source.piece(node).text
                name = text.split("=", 1)[0].rstrip("+").split("[", 1)[0]
                assigned.append((name, text))
            elif node.type in ("command", "redirected_statement"):
                text = self.source.piece(node).text
                if MENTION.search(text) is not None or _INDIRECT.match(text) is not None:
                    seeds |= referenced_names(text)
            waiting.extend(node.children)
        return reaching_names(seeds, assigned)

    def _report_error(self, before: int) -> None:
        """Says why a part of the script cannot be read. What the grammar stumbles over elsewhere does no harm."""
        error = first_error(self.source.root)
        if error is None:
            return
        script = self.source.script
        quote = unclosed_quote(script.text)
        if quote is not None:
            self.out.problem(f"the quote {script.text[quote]} is not closed", script.starts[quote], "close it")
            return
        start, end = self._at(error)
        read = any(start <= draft.start < end for draft in self.out.drafts[before:])
        if not read and MENTION.search(self.source.piece(error).text) is not None:
            self.out.problem("shell syntax that cannot be read", start)

    def spend(self) -> bool:
        """Counts a step; False when the script is too long to follow."""
        self.steps += 1
        if self.steps == self.steps_left:
            self.out.problem("the script has too many steps to follow", None)
        return self.steps < self.steps_left

    def block(self, nodes: Sequence[Node], states: list[State]) -> list[State]:
        """Follows statements in order on every path."""
        index = 0
        while index < len(nodes) and states:
            node = nodes[index]
            index += 1
            if not node.is_named or node.type == "comment":
                continue
            before = len(self.out.drafts)
            states = self.statement(node, states)
            if len(self.out.drafts) > before:
                index += join_lost_lines(self.source, nodes[index - 1 :], self.out.drafts[before:], states)
        return states

    def leaf(self, node: Node, state: State) -> list[State]:
        """Follows a statement that does not branch."""
        kind = node.type
        if kind == "command":
            return self.command(node, state, node)
        if kind == "redirected_statement":
            return self._redirected(node, state)
        if kind == "variable_assignment":
            self.assign(node, state)
        elif kind == "variable_assignments":
            for child in node.children:
                if child.type == "variable_assignment":
                    self.assign(child, state)
        elif kind == "declaration_command":
            self._declare(node, state)
        elif kind == "unset_command":
            for child in node.children[1:]:
                state.vars.pop(self.source.piece(child).text, None)
        elif kind == "function_definition":
            self._define(node)
        elif kind in ("ERROR", "program"):
            return self.block(node.children, [state])
        return [state]

    def _define(self, node: Node) -> None:
        name = next((child for child in node.children if child.type == "word"), None)
        if name is not None and node.children:
            self.functions[self.source.piece(name).text] = node.children[-1]

    def _redirected(self, node: Node, state: State) -> list[State]:
        body = node.children[0] if node.children else node
        states = [state]
        if body.type == "command":
            states = self.command(body, state, node)
        elif body is not node:
            states = self.statement(body, states)
        read_heredocs(self, node, body, states[0] if states else state)
        for child in node.children:
            if child.type == "heredoc_redirect":
                for part in child.children:
                    if part.type == "pipeline":
                        states = self.block(part.children, states)
        return states

    def assign(self, node: Node, state: State, *, exported: bool = False, prefix: bool = False) -> None:
        """Follows ``NAME=value``, ``NAME+=value``, ``NAME=(...)`` and ``NAME[i]=value``."""
        children = node.children
        if len(children) < 2:
            return
        target, operator = children[0], children[1].type
        if target.type == "subscript":
            name = self.source.piece(target.children[0]).text
            state.assign(name, Var(value=Mapped.at(HOLE, *self._at(node)), value_at=self._at(node)))
            return
        name = self.source.piece(target).text
        name_at = self._at(target)
        before = state.get(name)
        if len(children) > 2 and children[2].type == "array":
            items = array_items(self.source, children[2], state)
            if operator == "+=":
                items = (*self._items_of(before, name_at), *items)
            state.assign(name, Var(items=items, name_at=name_at, value_at=self._at(children[2])))
            return
        end = self.source.at(node.end_byte)
        start = self.source.at(children[1].end_byte)
        word = self.source.script[start:end]
        field = expand_one(word, state)
        place = self._span(start, end)
        value, by_default = field.chars, field.by_default
        if operator == "+=":
            value, by_default = self._appended(before, field, name_at)
        layers = ("shell", *self.source.script.layers)
        var = Var(value, None, False, name_at, place, by_default, field.alternatives, layers)
        state.assign(name, replace(var, exported=exported, prefix=prefix))

    def _appended(self, before: Var | None, field: Field, at: tuple[int, int]) -> tuple[Mapped, bool]:
        from planner.parse.source import join

        if before is None or before.value is None:
            return join([Mapped.at(HOLE_MANY, *at), field.chars]), field.by_default
        return join([before.value, field.chars]), before.by_default or field.by_default

    def _items_of(self, var: Var | None, at: tuple[int, int]) -> tuple[Field, ...]:
        if var is None:
            return (Field(Mapped.at(HOLE_MANY, *at), *at),)
        if var.items is not None:
            return var.items
        return () if var.value is None else (Field(var.value, *(var.value_at or at), layers=var.layers),)

    def _declare(self, node: Node, state: State) -> None:
        words = [child for child in node.children if child.is_named]
        keyword = self.source.piece(node.children[0]).text
        options = [self.source.piece(child).text for child in words if child.type == "word"]
        exported = (keyword == "export" and "-n" not in options) or any(
            option.startswith("-") and "x" in option for option in options
        )
        for child in words:
            if child.type == "variable_assignment":
                self.assign(child, state, exported=exported)
            elif child.type == "variable_name" and exported:
                name = self.source.piece(child).text
                var = state.get(name)
                if var is not None:
                    state.vars[name] = replace(var, exported=True)

    def command(self, node: Node, state: State, outer: Node) -> list[State]:
        """Follows a simple command."""
        source = self.source
        inner = state
        prefixes = [child for child in node.children if child.type == "variable_assignment"]
        if prefixes:
            inner = state.copy()
            for child in prefixes:
                self.assign(child, inner, exported=True, prefix=True)
        spans = source.words(node)
        if outer is not node:
            spans = sorted({*spans, *(span for span in source.words(outer) if span[0] >= source.at(node.end_byte))})
        if not spans:
            return [inner if prefixes else state]
        fields, unquoted = source.expand_words(spans, state)
        if not fields:
            return [state]
        name = fields[0].text
        if name in self.functions and self.call_depth < _DEEPEST_CALL:
            return self._call(str(name), fields, state)
        known = self._builtin(name, fields, state)
        if known is not None:
            return known
        if self._mentions(fields):
            setting = self.setting.with_env(inner.env(self.used))
            setting = replace(setting, condition=(*setting.condition, *state.conditions))
            before = len(self.out.drafts)
            read_words(fields, setting, self.out, self.depth, site=("shell", source.offset(node.start_byte)))
            if unquoted:
                _note_json(self.out.drafts[before:], unquoted)
            if name == "exec" and len(self.out.drafts) > before:
                state.ended = True
        return [state]

    def _mentions(self, fields: Sequence[Field]) -> bool:
        return any(MENTION.search(field.shown) is not None for field in fields)

    def _builtin(self, name: str | None, fields: Sequence[Field], state: State) -> list[State] | None:
        if name == "exit":
            state.ended = True
        elif name == "return":
            state.returned = True
        elif name == "set":
            options = [field.text for field in fields[1:]]
            if "-a" in options or "allexport" in options:
                state.export_all = "+a" not in options and "+o" not in options
            elif "+a" in options:
                state.export_all = False
        elif name in ("read", "mapfile", "readarray", "getopts"):
            for field in fields[1:]:
                if field.text is not None and field.text.isidentifier():
                    self.unknown(field.text, state, (field.start, field.end))
        elif name == "shift":
            self._shift(fields, state)
        elif name in _DECLARING and len(fields) > 1:
            return [state]
        else:
            return None
        return [state]

    def unknown(self, name: str, state: State, at: tuple[int, int]) -> None:
        """The variable takes a value that the file does not say."""
        state.assign(name, Var(value=Mapped.at(HOLE, *at), name_at=at, value_at=at))

    def _shift(self, fields: Sequence[Field], state: State) -> None:
        var = state.get("@")
        if var is None or var.items is None:
            for name in [name for name in state.vars if name.isdigit()]:
                del state.vars[name]
            return
        number = fields[1].text if len(fields) > 1 else None
        count = int(number) if number is not None and number.isdecimal() and len(number) < 4 else 1
        _set_arguments(state, var.items[count:])

    def _call(self, name: str, fields: Sequence[Field], state: State) -> list[State]:
        self.called.add(name)
        kept = {key: var for key, var in state.vars.items() if key in ("@", "*", "#") or key.isdigit()}
        _set_arguments(state, tuple(fields[1:]))
        states = self._body(name, [state])
        for after in states:
            after.returned = False
            for key in [key for key in after.vars if key in ("@", "*", "#") or key.isdigit()]:
                del after.vars[key]
            after.vars.update(kept)
        return states

    def _body(self, name: str, states: list[State]) -> list[State]:
        outer = self.setting
        self.setting = outer.named(name)
        self.call_depth += 1
        try:
            return self.statement(self.functions[name], states)
        finally:
            self.call_depth -= 1
            self.setting = outer

    def _uncalled(self, state: State) -> None:
        """Functions that the file defines and does not call: another file may."""
        for name in list(self.functions):
            if name not in self.called and MENTION.search(self.source.piece(self.functions[name]).text):
                self.called.add(name)
                start = state.copy()
                start.ended = start.returned = False
                self._body(name, [start])

    def _unused_strings(self, state: State) -> None:
        """A command kept in a variable that this file does not run."""
        setting = self.setting.with_env(state.env(self.used))
        for var in state.vars.values():
            if var.items is not None:
                if self._mentions(var.items):
                    read_words(var.items, setting, self.out, self.depth)
            elif var.value is not None and " " in var.value.text and var.name_at is not None:
                self.out.guess(var.value, setting, self.depth)

    def _at(self, node: Node) -> tuple[int, int]:
        return self._span(self.source.at(node.start_byte), self.source.at(node.end_byte))

    def _span(self, start: int, end: int) -> tuple[int, int]:
        script = self.source.script
        if start < end:
            return script.span(start, end)
        at = script.starts[start] if start < len(script.text) else (script.ends[-1] if script.text else 0)
        return at, at


def _set_arguments(state: State, items: tuple[Field, ...]) -> None:
    for name in [name for name in state.vars if name.isdigit()]:
        del state.vars[name]
    exact = not any(item.splits for item in items)
    for name in ("@", "*"):
        state.vars[name] = Var(items=items)
    if exact:
        state.vars["#"] = Var(value=Mapped(str(len(items)), [0] * 9, [0] * 9))
        for index in range(1, 10):
            if index <= len(items):
                item = items[index - 1]
                state.vars[str(index)] = Var(
                    item.chars, None, value_at=(item.start, item.end), by_default=item.by_default, layers=item.layers
                )
    else:
        state.vars.pop("#", None)


def _note_json(drafts: Sequence[Draft], places: Sequence[int]) -> None:
    for draft in drafts:
        inside = [at for at in places if draft.start <= at < draft.end]
        draft.notes += tuple(
            DraftNote(
                NoteKind.UNQUOTED_JSON, "JSON without quotes: a shell splits it and takes its quotes away", at
            )
            for at in inside
        )  # fmt: skip
