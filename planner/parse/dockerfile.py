"""Dockerfiles: the server that the last stage's ENTRYPOINT and CMD start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from planner.parse.json_tree import JsonFault, read_json
from planner.parse.launchers import read_words
from planner.parse.model import ContainerFacts, EnvHow, Token
from planner.parse.nodes import Listing, Scalar
from planner.parse.parameters import Var
from planner.parse.setting import MENTION, Collector, EnvItem, Setting
from planner.parse.source import Field, Mapped, join
from planner.parse.state import State
from planner.parse.words import expand_one

__all__ = ["read_dockerfile"]

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+")
_KNOWN_WORDS = """
FROM RUN CMD LABEL MAINTAINER EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL
HEALTHCHECK SHELL
"""
_KNOWN = frozenset(_KNOWN_WORDS.split())
_HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1")


@dataclass(slots=True)
class _Stage:
    image: Token | None = None
    env: list[EnvItem] = field(default_factory=list)
    entrypoint: Mapped | None = None
    command: Mapped | None = None


def read_dockerfile(text: Mapped, setting: Setting, out: Collector, depth: int = 0) -> None:
    """Adds the launch of each stage that starts a server."""
    stages: dict[str, _Stage] = {}
    stage = _Stage()
    scope = State()
    order = [stage]
    for word, body in _instructions(text):
        if word == "FROM":
            stage = _from(body, stages, scope)
            order.append(stage)
        elif word == "ARG":
            _arg(body, scope)
        elif word == "ENV":
            _env(body, stage, scope)
        elif word == "ENTRYPOINT":
            stage.entrypoint, stage.command = body, None
        elif word == "CMD":
            stage.command = body
        elif word == "RUN" and MENTION.search(body.text):
            out.script(body, replace(setting, container=ContainerFacts(image=stage.image)), depth)
        elif word not in _KNOWN and body.text:
            out.problem(f"{word} is not a Dockerfile instruction", body.starts[0])
    for stage in order:
        _start(stage, setting, out, depth)


def _start(stage: _Stage, setting: Setting, out: Collector, depth: int) -> None:
    inside = replace(setting, container=ContainerFacts(image=stage.image)).with_env(stage.env)
    words: list[Field] = []
    for body in (stage.entrypoint, stage.command):
        if body is None:
            continue
        listed = _exec_form(body)
        if listed is None:
            before = len(out.drafts)
            out.script(body, inside, depth)
            if len(out.drafts) > before:
                return
            continue
        words += listed
    if words:
        read_words(words, inside, out, depth, site=words[0].start)


def _exec_form(body: Mapped) -> list[Field] | None:
    """Words of ``["a", "b"]``; None for the shell form. No variable is replaced in the exec form."""
    if not body.text.lstrip().startswith("["):
        return None
    try:
        tree = read_json(body)
    except JsonFault:
        return None
    if not isinstance(tree, Listing) or not all(isinstance(item, Scalar) and item.kind == "str" for item in tree.items):
        return None
    return [item.field() for item in tree.items if isinstance(item, Scalar)]


def _from(body: Mapped, stages: dict[str, _Stage], scope: State) -> _Stage:
    words = [match for match in re.finditer(r"\S+", body.text) if not match.group().startswith("--")]
    stage = _Stage()
    if words:
        piece = body[words[0].start() : words[0].end()]
        base = stages.get(piece.text)
        if base is not None:
            stage = _Stage(base.image, list(base.env), base.entrypoint, None)
        else:
            found = expand_one(piece, scope)
            start, end = piece.span(0, len(piece.text))
            stage.image = Token(
                found.text, piece.text, 0, 0, 0, 0, found.text is not None, start, end, by_default=found.by_default
            )  # fmt: skip
    if len(words) > 2 and words[1].group().lower() == "as":
        stages[words[2].group()] = stage
    return stage


def _arg(body: Mapped, scope: State) -> None:
    match = re.match(r"([A-Za-z_]\w*)(=)?", body.text)
    if match is None or match.group(2) is None:
        return
    value = expand_one(body[match.end() :][: len(body.text[match.end() :].split("\n")[0].rstrip())], scope)
    scope.assign(match.group(1), Var(value.chars, by_default=True))


def _env(body: Mapped, stage: _Stage, scope: State) -> None:
    from planner.parse.compose import _word_end

    text, at = body.text, 0
    old = re.match(r"([A-Za-z_]\w*)[ \t]+([^=\s].*)", text)
    if old is not None and "=" not in old.group(1):
        value = body[old.start(2) : old.start(2) + len(old.group(2).rstrip())]
        found = expand_one(value, scope)
        _set(stage, scope, EnvItem(old.group(1), found, EnvHow.CONTAINER, True, body.span(0, old.end(1))))
        return
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        stop = _word_end(text, at)
        piece = body[at:stop]
        named = re.match(r"([A-Za-z_]\w*)=", piece.text)
        if named is not None:
            value = piece[named.end() :]
            found = expand_one(value, scope)
            if not value.text:
                place = piece.span(0, len(piece.text))[1]
                found = replace(found, start=place, end=place)
            _set(stage, scope, EnvItem(named.group(1), found, EnvHow.CONTAINER, True, piece.span(0, named.end(1))))
        at = stop


def _set(stage: _Stage, scope: State, item: EnvItem) -> None:
    stage.env = [kept for kept in stage.env if kept.name != item.name] + [item]
    scope.assign(item.name, Var(item.value.chars, by_default=item.value.by_default))


def _instructions(text: Mapped) -> Iterator[tuple[str, Mapped]]:
    """Instructions with their text; continued lines are joined and comment lines between them dropped."""
    at = 0
    while at < len(text.text):
        parts: list[Mapped] = []
        more = True
        while more and at < len(text.text):
            end = text.text.find("\n", at)
            end = len(text.text) if end < 0 else end
            line = text[at:end]
            at = end + 1
            if line.text.lstrip().startswith("#") or (parts and not line.text.strip()):
                more = bool(parts)
                continue
            stripped = line.text.rstrip()
            more = stripped.endswith("\\")
            parts.append(replace(line, text=line.text[: len(stripped) - 1].ljust(len(line.text))) if more else line)
        if not parts:
            continue
        whole = join(parts)
        heredoc = _HEREDOC.search(whole.text)
        if heredoc is not None and whole.text.lstrip()[:3].upper() in ("RUN", "COP"):
            end = text.text.find(f"\n{heredoc.group(2)}", at - 1)
            end = len(text.text) if end < 0 else end + 1 + len(heredoc.group(2))
            whole = join([whole, text[at - 1 : end], Mapped.at("\n", whole.starts[0], whole.starts[0])])
            at = end + 1
        match = _INSTRUCTION.match(whole.text)
        if match is not None:
            yield match.group(1).upper(), whole[match.end() :]
