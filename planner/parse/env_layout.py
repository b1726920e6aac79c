"""Where environment variables are put in and taken out."""

from __future__ import annotations

import json
import re

from planner.errors import InputError, Problem
from planner.parse.encoding import encode
from planner.parse.layout import Piece
from planner.parse.model import EnvHow, EnvSetting, Form, ParsedLaunch

__all__ = ["added_env", "changed_env", "removed_env"]

_PAIR = re.compile(r"[ \t]*\{[ \t]*name:")
_WHOLE_HEAD = re.compile(r"\s*(?:export[ \t]+|-[ \t]+|Environment=|ENV[ \t]+)?[\"']?")
_WHOLE_TAIL = re.compile(r"[\"']?[ \t]*;?[ \t]*(?:\\[ \t]*)?(?:#.*)?\n?")


def changed_env(setting: EnvSetting, value: str) -> list[Piece]:
    """Writes another value over the one that is there."""
    token, name = setting.value, setting.name_token
    if name is not None and token.start <= name.start and name.end <= token.end:
        value = f"{setting.name}={value}"
    return [(token.start, token.end, encode(value, token.layers, raw=token.raw))]


def removed_env(text: str, setting: EnvSetting) -> list[Piece]:
    """Takes a variable out, with its line when it has one of its own."""
    name, value = setting.name_token, setting.value
    if name is None:
        raise _no_place(None)
    start, end = min(name.start, value.start), max(name.end, value.end)
    line_start, stop = _line(text, start, end)
    if re.fullmatch(r"\s*-[ \t]+(?:\{[ \t]*)?name:[ \t]*", text[line_start:start]):
        return [(line_start, stop, "")]
    if _WHOLE_HEAD.fullmatch(text, line_start, start) and _WHOLE_TAIL.fullmatch(text, end, stop):
        return [(line_start, stop, "")]
    option = re.search(r"(?:-e|--env)[ =]$", text[:start])
    start = option.start() if option else start
    after = re.compile(r"[ \t]*,?[ \t]*(?:\\\n[ \t]*)?").match(text, end)
    return [(start, after.end() if after else end, "")]


def added_env(text: str, launch: ParsedLaunch, name: str, value: str, style: str) -> list[Piece]:
    """Sets a variable: beside the variables that are there (``near``), as a prefix, or through ``env``."""
    if style == "near":
        return _near(text, launch, name, value)
    if not launch.program or launch.program[0].layers[:1] not in (("shell",), ("split",)):
        raise _no_place(launch)
    first = launch.program[0]
    return [(first.start, first.start, f"{'env ' if style == 'env' else ''}{name}={encode(value, first.layers)} ")]


def _near(text: str, launch: ParsedLaunch, name: str, value: str) -> list[Piece]:
    start = launch.program[0].start if launch.program else launch.span.start
    if launch.form is Form.SYSTEMD:
        line = _line_before(text, start, r"^[ \t]*ExecStart=")
        return [(line, line, f"Environment={encode(f'{name}={value}', ('systemd',))}\n")]
    if launch.form is Form.DOCKERFILE:
        line = _line_before(text, start, r"^[ \t]*(?:CMD|ENTRYPOINT)\b")
        return [(line, line, f"ENV {name}={encode(value, ('shell',))}\n")]
    if launch.container is not None and launch.container.image is not None and launch.form is Form.SHELL:
        image = launch.container.image
        return [(image.start, image.start, f"-e {name}={encode(value, image.layers)} ")]
    if launch.form is not Form.SHELL:
        return _beside(text, launch, name, value)
    exports = [item for item in launch.env if item.how is EnvHow.EXPORT and item.name_token is not None]
    if exports:
        stop = _line(text, exports[-1].value.start, exports[-1].value.end)[1]
        line_start = text.rfind("\n", 0, exports[-1].value.start) + 1
        head = re.match(r"[ \t]*export[ \t]+", text[line_start:])
        if head is not None and not text[exports[-1].value.end : stop].strip():
            written = encode(value, exports[-1].value.layers)
            return [(stop, stop, f"{head.group()}{name}={written}\n")]
    raise _no_place(launch)


def _beside(text: str, launch: ParsedLaunch, name: str, value: str) -> list[Piece]:
    """After the last variable of a compose file or a manifest, written as it is."""
    near = [item for item in launch.env if item.how is EnvHow.CONTAINER and item.name_token is not None]
    if launch.form is Form.COMPOSE:
        value = value.replace("$", "$$")
    if not near or near[-1].name_token is None:
        return _section(text, launch, name, json.dumps(value, ensure_ascii=False))
    last, token = near[-1], near[-1].name_token
    line_start, _ = _line(text, token.start, token.end)
    line_stop = _line(text, last.value.start, last.value.end)[1]
    head = text[line_start : token.start]
    quoted = json.dumps(value, ensure_ascii=False)
    before = "" if text[line_stop - 1 : line_stop] == "\n" else "\n"
    after = "\n" if not before else ""

    def line(entry: str) -> list[Piece]:
        return [(line_stop, line_stop, f"{before}{entry}{after}")]

    if re.fullmatch(r"[ \t]*-[ \t]+[\"']?", head):
        quote = head[-1] if head[-1] in "\"'" else ""
        if quote == '"':
            return line(f"{head}{json.dumps(f'{name}={value}', ensure_ascii=False)[1:]}")
        return line(f"{head}{encode(f'{name}={value}', ('yaml-single' if quote else 'yaml-plain',))}{quote}")
    listed = re.fullmatch(r"([ \t]*)-([ \t]+)(\{[ \t]*)?name:[ \t]*", head)
    if listed is not None:
        if listed.group(3):
            return line(f"{listed.group(1)}-{listed.group(2)}{{name: {name}, value: {quoted}}}")
        indent = listed.group(1) + " " + listed.group(2)
        return line(f"{listed.group(1)}-{listed.group(2)}name: {name}\n{indent}value: {quoted}")
    if re.fullmatch(r"[ \t]*[\"']?", head):
        return line(f"{head.rstrip(chr(34) + chr(39))}{name}: {quoted}")
    if "{" in head and "name:" not in head:
        return [(last.value.end, last.value.end, f", {name}: {quoted}")]
    raise _no_place(launch)


def _section(text: str, launch: ParsedLaunch, name: str, quoted: str) -> list[Piece]:
    """A section of variables for a container that has none."""
    start = launch.program[0].start if launch.program else launch.span.start
    line = _line_before(text, start, r"^[ \t]*(?:command|args|entrypoint)[ \t]*:")
    match = re.compile(r"[ \t]*").match(text, line)
    indent = match.group() if match else ""
    if launch.form is Form.COMPOSE:
        return [(line, line, f"{indent}environment:\n{indent}  {name}: {quoted}\n")]
    if launch.form is Form.KUBERNETES:
        return [(line, line, f"{indent}env:\n{indent}- name: {name}\n{indent}  value: {quoted}\n")]
    raise _no_place(launch)


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """Bounds of the lines of a stretch, the last line end included."""
    stop = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, len(text) if stop < 0 else stop + 1


def _line_before(text: str, at: int, pattern: str) -> int:
    found = [match.start() for match in re.finditer(pattern, text, re.MULTILINE) if match.start() <= at]
    if not found:
        raise _no_place(None)
    return found[-1]


def _no_place(launch: ParsedLaunch | None) -> InputError:
    line = None if launch is None else launch.span.line
    return InputError([Problem("the file has no place where such a variable is set", line=line)])
