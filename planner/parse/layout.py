"""Where words are put in and taken out so that a file keeps its layout."""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.errors import InputError, Problem
from planner.parse.encoding import encode
from planner.parse.model import Flag, Form, ParsedLaunch, Token

__all__ = ["Piece", "added_flag", "removed", "resized"]

Piece = tuple[int, int, str]
"""Replace ``text[start:end]`` by the string."""
_LINE_HEAD = re.compile(r"[ \t]*(?:-[ \t]+)?")
_LINE_TAIL = re.compile(r"[ \t]*,?[ \t]*(\\?)[ \t]*(?:#[^\n]*)?")
_CONTINUED = re.compile(r"[ \t]*\\\r?(\n(?:[ \t]*[#;][^\n]*\n)*)$")
_GAP = re.compile(r"(?:[ \t,]|\\?\r?\n)*")
_LOOSE_GAP = re.compile(r"(?:[ \t,]|\\?\r?\n(?:[ \t]*[#;][^\n]*\n)*)*")
"""The same with comment lines, which go with an option that has its value below them."""


def removed(text: str, launch: ParsedLaunch, flag: Flag) -> list[Piece]:
    """Takes an option and its values out."""
    tokens = [flag.token] if flag.joined else [flag.token, *flag.values]
    start, end = flag.token.start, flag.token.end
    pieces: list[Piece] = []
    for token in tokens[1:]:
        if token.start >= end and (_LOOSE_GAP.fullmatch(text, end, token.start) or launch.keyed):
            end = token.end
        elif not start <= token.start < end:
            pieces += _cut(text, launch, token.start, token.end)
    if launch.keyed:
        end = max(end, _entry_end(text, flag))
    if all(_own_item(text, token) for token in tokens) and not launch.keyed:
        return [piece for token in tokens for piece in _cut(text, launch, token.start, token.end)]
    return [*_cut(text, launch, start, end), *pieces]


def _entry_end(text: str, flag: Flag) -> int:
    """Where the value of a key ends, with the bracket of a list."""
    at = flag.token.end
    if not flag.values:
        match = re.compile(r"[\"']?[ \t]*[:=][ \t]*(?:[\w~.-]+|\[[^\]\n]*\])?").match(text, at)
        return match.end() if match else at
    end = max(at, *(value.end for value in flag.values))
    if "[" in text[at : flag.values[0].start]:
        close = text.find("]", end)
        return end if close < 0 else close + 1
    return end


def _own_item(text: str, token: Token) -> bool:
    """Whether the word is an item of a YAML block list."""
    line = text.rfind("\n", 0, token.start) + 1
    return re.fullmatch(r"[ \t]*-[ \t]+", text[line : token.start]) is not None


def _cut(text: str, launch: ParsedLaunch, start: int, end: int) -> list[Piece]:
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    head = _LINE_HEAD.fullmatch(text, line_start, start)
    tail = _LINE_TAIL.fullmatch(text, end, line_end)
    if head is not None and tail is not None and line_start > 0:
        last_of_command = _CONTINUED.search(text[:line_start])
        if last_of_command is not None and not tail.group(1):
            # The line before must not go on; comment lines between the two stay (systemd and Docker allow them).
            return [(last_of_command.start(), end, last_of_command.group(1).removesuffix("\n"))]
        comma = re.search(r",[ \t]*\n$", text[:line_start])
        if comma is not None and "," not in tail.group() and text[line_end:].lstrip()[:1] in ("}", "]"):
            return [(comma.start(), end, "")]
        return [(line_start, min(line_end + 1, len(text)), "")]
    before = max((token.end for token in _all_words(launch) if token.end <= start), default=None)
    if before is not None and _GAP.fullmatch(text, before, start):
        return [(before, end, "")]
    after = _GAP.match(text, end)
    return [(start, after.end() if after else end, "")]


def _all_words(launch: ParsedLaunch) -> list[Token]:
    return [*launch.program, *launch.argv]


def added_flag(text: str, launch: ParsedLaunch, name: str, values: Sequence[str], where: str) -> list[Piece]:
    """Puts an option in: after the last word inside the command (``inside``), after the very last, or the first."""
    if launch.keyed:
        return _added_key(text, launch, name, values)
    anchor = _anchor(launch, where)
    if anchor.layers[:1] == ("split",) and where == "inside":
        anchor = launch.program[-1] if launch.program else anchor
    flag = next((item for item in launch.flags if anchor is item.token or anchor in item.values), None)
    first = flag.token if flag is not None else anchor
    words = [name, *values]
    style = next((layer for layer in anchor.layers if layer.startswith("whole-")), "")
    joined = bool(flag is not None and flag.joined and len(values) == 1)
    if joined:
        words = [f"{name}={values[0]}"]
    written = [encode(word, anchor.layers, raw=anchor.raw if style else "") for word in words]
    line_start = text.rfind("\n", 0, first.start) + 1
    indent = text[line_start : first.start]
    if _own_item(text, anchor):
        item = text[text.rfind("\n", 0, anchor.start) + 1 : anchor.start]
        return [(anchor.end, anchor.end, "".join(f"\n{item}{word}" for word in written))]
    if style:
        return [(anchor.end, anchor.end, "".join(f", {word}" for word in written))]
    line = " ".join(written)
    if indent.strip() or line_start == 0 or first in launch.program:
        return [(anchor.end, anchor.end, " " + line)]
    previous = text[: line_start - 1] if line_start else ""
    continued = previous.rstrip("\r").endswith("\\")
    return [(anchor.end, anchor.end, (" \\\n" if continued else "\n") + indent + line)]


def _anchor(launch: ParsedLaunch, where: str) -> Token:
    words = [token for token in _all_words(launch) if token.layers != ("key",)]
    inside = [token for token in words if launch.program and token.start >= launch.program[-1].start]
    if where == "inside" and inside:
        return max(inside, key=lambda token: token.end)
    if not words:
        raise InputError([Problem("there is no word to add to", line=launch.span.line)])
    return words[-1] if where != "first" or not launch.program else launch.program[-1]


def resized(text: str, launch: ParsedLaunch, flag: Flag, values: Sequence[str]) -> list[Piece]:
    """Gives an option another number of values: none, one or several."""
    token = flag.token
    if launch.keyed:
        return [(token.start, _entry_end(text, flag), _entry(launch, token.raw, values))]
    style = next((layer for layer in token.layers if layer.startswith("whole-")), "")
    written = [encode(value, token.layers, raw=token.raw if style else "") for value in values]
    if flag.joined:
        name = encode(flag.name, token.layers, raw=token.raw if style else "")
        return [(token.start, token.end, _between(text, token).join([name, *written]))]
    pieces = [piece for value in flag.values for piece in _cut(text, launch, value.start, value.end)]
    if not written:
        return pieces
    end = flag.values[-1].end if flag.values else token.end
    if flag.values and _GAP.fullmatch(text, token.end, flag.values[0].start):
        between = text[token.end : flag.values[0].start]
        return [(token.end, end, "".join(between + word for word in written))]
    return [*pieces, (token.end, token.end, "".join(_between(text, token) + word for word in written))]


def _between(text: str, token: Token) -> str:
    """What stands between a word and the next in the list that holds it."""
    if _own_item(text, token):
        return "\n" + text[text.rfind("\n", 0, token.start) + 1 : token.start]
    return ", " if any(layer.startswith("whole-") for layer in token.layers) else " "


def _entry(launch: ParsedLaunch, key: str, values: Sequence[str]) -> str:
    """A key and its value as the form writes them."""
    python = launch.form is Form.PYTHON
    quoted = key.startswith(('"', "'"))
    style = ("whole-python",) if python else ("whole-json",) if key.startswith('"') else ("whole-yaml-plain",)
    items = [encode(value, style, keyed=True) for value in values] or ["True" if python else "true"]
    value = items[0] if len(items) == 1 else "[" + ", ".join(items) + "]"
    return f"{key}={value}" if python and not quoted else f"{key}: {value}"


def _added_key(text: str, launch: ParsedLaunch, name: str, values: Sequence[str]) -> list[Piece]:
    """A key after the last one, written as the others are."""
    flags = [*launch.flags, *launch.switched_off]
    if not flags:
        raise InputError([Problem("there is no key to add to", line=launch.span.line)])
    last = max(flags, key=lambda flag: flag.token.start)
    end = _entry_end(text, last)
    raw = last.token.raw
    plain = name.lstrip("-")
    key = plain.replace("-", "_") if any("_" in flag.token.raw for flag in flags) else plain
    python = launch.form is Form.PYTHON
    key = key.replace("-", "_") if python else key
    flow = python or raw.startswith('"') or text[end : end + 1] in (",", "}")
    quote = raw[0] if raw[:1] in ("'", '"') else ""
    entry = _entry(launch, f"{quote}{key}{quote}", values)
    line_start = text.rfind("\n", 0, last.token.start) + 1
    indent = text[line_start : last.token.start]
    if indent.strip() or (line_start == 0 and flow):
        return [(end, end, f", {entry}")]
    if flow:
        comma = text[end : end + 1] == ","
        return [(end + comma, end + comma, f"{'' if comma else ','}\n{indent}{entry}{',' if comma else ''}")]
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    return [(stop, stop, f"\n{indent}{entry}")]
