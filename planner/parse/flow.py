"""Branches, loops and lists of a shell script."""

from __future__ import annotations

import fnmatch
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.parse.conditions import Truth, condition_text, judge
from planner.parse.grammar import SyntaxSource, ranged
from planner.parse.parameters import Var
from planner.parse.setting import MENTION, Collector, Setting
from planner.parse.source import Field, Mapped
from planner.parse.state import State, merge, unknown_of
from planner.parse.words import expand_one

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Flow"]

_MOST_TURNS = 32
_TESTS = frozenset({"test_command", "negated_command"})
_RUNNING = frozenset({"command", "pipeline", "redirected_statement", "negated_command", "list"})
"""Conditions that run something."""
_SIMPLE = re.compile(r'"?\$\{?([A-Za-z_]\w*)\}?"?$')
_ARGUMENT_LOOP = re.compile(r"\$#|\$\{#|getopts|\$\{?1\b|\(\(\s*\$?#")


class Flow(ABC):
    """Follows statements that branch; a subclass follows the others."""

    source: SyntaxSource
    out: Collector
    names: frozenset[str]
    setting: Setting

    @abstractmethod
    def leaf(self, node: Node, state: State) -> list[State]:
        """Follows a statement that does not branch."""

    @abstractmethod
    def block(self, nodes: Sequence[Node], states: list[State]) -> list[State]:
        """Follows statements in order."""

    @abstractmethod
    def spend(self) -> bool:
        """Counts a step; False when there were too many."""

    @abstractmethod
    def unknown(self, name: str, state: State, at: tuple[int, int]) -> None:
        """The variable takes a value that the file does not say."""

    def statement(self, node: Node, states: list[State]) -> list[State]:
        """Follows one statement on every path."""
        after: list[State] = []
        for state in states:
            if state.ended:
                continue
            if state.returned or not self.spend():
                after.append(state)
                continue
            after.extend(self._one(node, state))
        return merge(after, self.names) if len(after) > 1 else [state for state in after if not state.ended]

    def _one(self, node: Node, state: State) -> list[State]:
        kind = node.type
        if kind == "if_statement":
            return self._if(list(node.children), state)
        if kind == "case_statement":
            return self._case(node, state)
        if kind == "for_statement":
            return self._for(node, state)
        if kind in ("while_statement", "c_style_for_statement"):
            return self._while(node, state)
        if kind == "list":
            return self._list(node, state)
        if kind in ("compound_statement", "do_group", "program", "else_clause"):
            return self.block(node.children, [state])
        if kind == "subshell":
            self.block(node.children, [state.copy()])
            return [state]
        if kind == "pipeline":
            for child in node.children:
                if child.is_named:
                    self.block([child], [state.copy()])
            return [state]
        if kind in _TESTS:
            inner = [child for child in node.children if child.is_named]
            if kind == "negated_command" and inner and inner[-1].type not in _TESTS:
                return self.statement(inner[-1], [state])
            return [state]
        return self.leaf(node, state)

    def _decide(self, tests: Sequence[Node], state: State) -> tuple[Truth, str]:
        """Verdict and text of a condition; a command in it is followed as well."""
        test = tests[-1]
        if test.type in _RUNNING and MENTION.search(self.source.piece(test).text):
            self.block([test], [state])
        text = condition_text(self.source.piece(test).text)
        if len(tests) > 1:
            return Truth(None), text
        truth = judge(test, state, self.source.piece)
        if truth.value is None and text in state.assumed:
            truth = Truth(state.assumed[text])
        return truth, text

    def _fork(self, truth: Truth, text: str, state: State) -> tuple[list[State], list[State]]:
        """Paths on which the condition holds, and on which it does not."""
        if truth.value is not None:
            return ([state], []) if truth.value else ([], [state])
        negated = text[2:] if text.startswith("! ") and " " not in text[2:] else f"not ({text})"
        yes, no = state.copy(text), state.copy(negated)
        for path, bindings, value in ((yes, truth.when_true, True), (no, truth.when_false, False)):
            for name, known in bindings:
                before = path.get(name)
                place = before.value_at if before is not None else None
                at = place or (0, 0)
                path.assign(
                    name,
                    Var(
                        Mapped.at(known, *at),
                        exported=before is not None and before.exported,
                        name_at=before.name_at if before is not None else None,
                        value_at=place,
                    ),
                )
            path.assumed[text] = value
        return [yes], [no]

    def _if(self, children: list[Node], state: State) -> list[State]:
        tests, body, rest = _parts_of_if(children)
        if not tests:
            return self.block(body, [state])
        truth, text = self._decide(tests, state)
        yes, no = self._fork(truth, text, state)
        n_drafts = len(self.out.drafts)
        after = self.block(body, yes) if yes else []
        if yes and no and not after and len(self.out.drafts) == n_drafts:
            # Where the other branch ends the script, the condition says nothing about what goes on.
            no[0].conditions = state.conditions
        if no:
            if rest and rest[0].type == "elif_clause":
                after += [end for path in no for end in self._if([*rest[0].children, *rest[1:]], path)]
            elif rest:
                after += self.block(rest[0].children, no)
            else:
                after += no
        return after

    def _case(self, node: Node, state: State) -> list[State]:
        subject = next((child for child in node.children if child.is_named), None)
        if subject is None:
            return [state]
        source = self.source.piece(subject)
        word = expand_one(source, state).text
        simple = _SIMPLE.match(source.text)
        after: list[State] = []
        open_paths = [state]
        for item in (child for child in node.children if child.type == "case_item"):
            patterns, body = self._case_item(item)
            if not open_paths:
                break
            if word is not None:
                if any(fnmatch.fnmatchcase(word, pattern) for pattern in patterns):
                    return self.block(body, open_paths)
                continue
            if "*" in patterns:
                return after + self.block(body, [path.copy() for path in open_paths])
            bound = ((simple.group(1), patterns[0]),) if simple and len(patterns) == 1 and _literal(patterns[0]) else ()
            text = f"{source.text} is {'|'.join(patterns)}"
            yes, no = self._fork(Truth(open_paths[0].assumed.get(text), when_true=bound), text, open_paths[0])
            after += self.block(body, yes) if yes else []
            open_paths = no
        return after + open_paths

    def _case_item(self, item: Node) -> tuple[list[str], list[Node]]:
        patterns: list[str] = []
        children = list(item.children)
        for index, child in enumerate(children):
            if child.type == ")":
                return [pattern.strip("\"'") for pattern in patterns], children[index + 1 :]
            if child.is_named:
                patterns.append(self.source.piece(child).text)
        return patterns, []

    def _for(self, node: Node, state: State) -> list[State]:
        named = [child for child in node.children if child.is_named]
        body = next((child for child in named if child.type in ("do_group", "compound_statement")), None)
        variable = next((child for child in named if child.type == "variable_name"), None)
        if body is None or variable is None:
            return [state]
        name = self.source.piece(variable).text
        values = [child for child in named if child not in (body, variable) and child.type != "comment"]
        texts = [self.source.piece(child) for child in values]
        if (not texts or [text.text for text in texts] in (['"$@"'], ["$@"])) and state.get("@") is None:
            return self._body_once(node, body, state, skip=not self._mentions_launch(body))
        fields: list[Field] = []
        for text in texts:
            fields.extend(ranged(text, state))
        if len(fields) > _MOST_TURNS or any(field.splits for field in fields) or not fields:
            at = fields[0].start if fields else 0
            self.unknown(name, state, (at, at))
            return self._body_once(node, body, state)
        return self._turns(name, fields, body, state)

    def _turns(self, name: str, fields: Sequence[Field], body: Node, state: State) -> list[State]:
        states = [state]
        for field in fields:
            label = f"{name}={field.text if field.text is not None else '...'}" if len(fields) > 1 else None
            for path in states:
                path.assign(name, Var(field.chars, value_at=(field.start, field.end), layers=field.layers))
                if label is not None:
                    path.conditions = (*path.conditions, label)
            states = self.block([body], states)
            for path in states:
                path.conditions = tuple(text for text in path.conditions if text != label)
        return states

    def _while(self, node: Node, state: State) -> list[State]:
        body = next((child for child in node.children if child.type in ("do_group", "compound_statement")), None)
        if body is None:
            return [state]
        for child in node.children:
            if child.type in _RUNNING and self._mentions_launch(child):
                self.block([child], [state.copy()])
        head = self.source.script.text[self.source.at(node.start_byte) : self.source.at(body.start_byte)]
        arguments = _ARGUMENT_LOOP.search(head) is not None and state.get("#") is None
        return self._body_once(node, body, state, skip=arguments and not self._mentions_launch(body))

    def _mentions_launch(self, node: Node) -> bool:
        return MENTION.search(self.source.piece(node).text) is not None

    def _body_once(self, node: Node, body: Node, state: State, *, skip: bool = False) -> list[State]:
        """A loop of unknown length: its body is followed once, with what it assigns unknown from the start.

        A loop over the script's own arguments is not entered (``skip``): the file is read as run without any.
        """
        if skip:
            return [state]
        for name in sorted(self._assigned(body)):
            before = state.get(name)
            if before is not None:
                state.vars[name] = unknown_of([before, Var(Mapped("\ufdd0", [0], [0]))])
        names = self._assigned(body)
        states = self.block([body], [state.copy()]) or [state]
        path = states[0]
        for name in names & path.vars.keys():
            path.vars[name] = unknown_of([path.vars[name], state.get(name)])
        path.conditions, path.assumed = state.conditions, dict(state.assumed)
        return [path]

    def _assigned(self, node: Node) -> set[str]:
        names: set[str] = set()
        stack = [node]
        while stack:
            top = stack.pop()
            if top.type == "variable_assignment" and top.children[0].type == "variable_name":
                names.add(self.source.piece(top.children[0]).text)
            stack.extend(top.children)
        return names

    def _list(self, node: Node, state: State) -> list[State]:
        """``a && b`` and ``a || b``. A command is taken to succeed; a test is judged."""
        if len(node.children) < 3:
            return self.block(node.children, [state])
        left, operator, right = node.children[0], node.children[1].type, node.children[2:]
        if left.type in _TESTS or (
            left.type == "command" and self.source.piece(left).text.startswith(("test ", "true", "false"))
        ):
            truth, text = self._decide([left], state)
            yes, no = self._fork(truth, text, state)
            go, stay = (yes, no) if operator == "&&" else (no, yes)
            return (self.block(right, go) if go else []) + stay
        if (
            operator == "||"
            and left.type == "list"
            and left.children[1].type == "&&"
            and left.children[0].type in _TESTS
        ):
            # test && a || b: b runs when the test fails.
            truth, text = self._decide([left.children[0]], state)
            yes, no = self._fork(truth, text, state)
            return (self.block(left.children[2:], yes) if yes else []) + (self.block(right, no) if no else [])
        states = self.block([left], [state])
        if operator == "||" and not any(self._mentions_launch(child) for child in right):
            return states
        return self.block(right, states)


def _parts_of_if(children: list[Node]) -> tuple[list[Node], list[Node], list[Node]]:
    """Tests, body, and the else and elif clauses."""
    tests: list[Node] = []
    body: list[Node] = []
    rest: list[Node] = []
    inside = False
    for child in children:
        if child.type in ("elif_clause", "else_clause"):
            rest.append(child)
        elif child.type == "then":
            inside = True
        elif child.is_named and child.type != "comment":
            (body if inside else tests).append(child)
    return tests, body, rest


def _literal(pattern: str) -> bool:
    return re.search(r"[*?\[$]", pattern) is None
