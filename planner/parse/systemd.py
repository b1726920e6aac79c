"""systemd units and drop-ins: ExecStart and Environment of ``[Service]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from planner.parse.launchers import assignment, read_words
from planner.parse.model import EnvHow
from planner.parse.setting import Collector, EnvItem, Setting
from planner.parse.source import HOLE, HOLE_MANY, Field, Mapped, join

__all__ = ["read_unit"]

_SECTION = re.compile(r"\s*\[([^\]]+)\]\s*")
_ASSIGNMENT = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*")
_UNIT_NAME = re.compile(r"#\s*(\S+\.service)\b")
_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)|%%|%[a-zA-Z]")


def read_unit(text: Mapped, setting: Setting, out: Collector, depth: int = 0) -> None:
    """Adds the launches of a unit. Text of several files (``systemctl cat``) is read as they override each other."""
    env: list[EnvItem] = []
    starts: list[Mapped] = []
    section, name = "", setting.name
    for line in _logical_lines(text):
        stripped = line.text.strip()
        match = _UNIT_NAME.match(stripped)
        if match is not None:
            name = match.group(1).rsplit("/", 1)[-1].removesuffix(".service")
        if not stripped or stripped[0] in "#;":
            continue
        heading = _SECTION.fullmatch(line.text)
        if heading is not None:
            section = heading.group(1)
            continue
        pair = _ASSIGNMENT.match(line.text)
        if pair is None:
            out.problem("neither a section nor Key=value", line.starts[0] if line.text else None)
            continue
        key, value = pair.group(1), line[pair.end() :]
        if section not in ("Service", ""):
            continue
        if key == "Environment":
            env = _environment(value, env)
        elif key == "ExecStart":
            starts = [*starts, value] if value.text.strip() else []
    inside = setting.named(name).with_env(env)
    for value in starts:
        words = _command(value, {item.name: item.value.chars for item in env})
        read_words(words, inside, out, depth, site=value.starts[0])


def _logical_lines(text: Mapped) -> Iterator[Mapped]:
    """Lines with their continuations; a comment line inside a continuation is skipped, as systemd does."""
    parts: list[Mapped] = []
    at = 0
    while at < len(text.text):
        end = text.text.find("\n", at)
        end = len(text.text) if end < 0 else end
        line = text[at:end]
        at = end + 1
        if parts and line.text.lstrip()[:1] in ("#", ";"):
            continue
        if line.text.endswith("\\"):
            blank = replace(line, text=line.text[:-1] + " ")
            parts.append(blank)
            continue
        yield join([*parts, line]) if parts else line
        parts = []
    if parts:
        yield join(parts)


def _environment(value: Mapped, env: list[EnvItem]) -> list[EnvItem]:
    if not value.text.strip():
        return []
    items = {item.name: item for item in env}
    for word in _words(value):
        item = assignment(word, EnvHow.SYSTEMD)
        if item is not None:
            chars = _specified(item.value.chars, {}, variables=False)
            items[item.name] = replace(item, value=replace(item.value, chars=chars))
    return list(items.values())


def _command(value: Mapped, env: dict[str, Mapped]) -> list[Field]:
    lead = len(value.text) - len(value.text.lstrip("@-:+! \t"))
    words: list[Field] = []
    for word in _words(value[lead:]):
        alone = re.fullmatch(r"\$([A-Za-z_]\w*)", word.shown)
        if alone is not None:
            # `$VAR` as a word of its own is split at blanks; `${VAR}` is not.
            known = env.get(alone.group(1))
            if known is None or known.has_hole:
                words.append(replace(word, chars=Mapped(HOLE_MANY, [word.start], [word.end])))
            else:
                split = _words(known)
                place = (known.starts[0], known.ends[-1]) if known.text else None
                one = replace(word, chars=split[0].chars, defined=place) if len(split) == 1 else None
                words.extend([one] if one is not None else split)
            continue
        words.append(replace(word, chars=_specified(word.chars, env, variables=True)))
    return words


def _specified(text: Mapped, env: dict[str, Mapped], *, variables: bool) -> Mapped:
    parts: list[Mapped] = []
    at = 0
    for match in _VARIABLE.finditer(text.text):
        piece = match.group()
        if piece[0] == "$" and not variables:
            continue
        parts.append(text[at : match.start()])
        start, end = text.span(match.start(), match.end())
        if piece in ("$$", "%%"):
            parts.append(Mapped(piece[0], [start], [end], text.layers))
        else:
            known = env.get(match.group(1) or match.group(2) or "")
            unknown = known is None or known.has_hole
            parts.append(
                Mapped(HOLE, [start], [end]) if unknown or known is None else Mapped.at(known.text, start, end)
            )
        at = match.end()
    return text if not parts else join([*parts, text[at:]])


def _words(value: Mapped) -> list[Field]:
    """Words of a systemd command line: quotes at a word's edge, C escapes."""
    from planner.parse.compose import _word_end

    text, at, fields = value.text, 0, []
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
            continue
        stop = _word_end(text, at)
        fields.append(_unquoted(value[at:stop]))
        at = stop
    return fields


def _unquoted(word: Mapped) -> Field:
    start, end = word.span(0, len(word.text))
    parts: list[Mapped] = []
    quote, at, text = "", 0, word.text
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            first, last = word.span(at, at + 2)
            parts.append(Mapped({"n": "\n", "t": "\t", "s": " "}.get(text[at + 1], text[at + 1]), [first], [last]))
            at += 2
            continue
        if quote and char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote = char
        else:
            parts.append(word[at : at + 1])
        at += 1
    chars = join(parts) if parts else Mapped("", [], [])
    quoted = any(char in text for char in "\"'\\")
    chars = Mapped(chars.text, chars.starts, chars.ends, ("shell-double",) if quoted else word.layers)
    return Field(chars, start, end, layers=("systemd", *word.layers), bare=not quoted)
