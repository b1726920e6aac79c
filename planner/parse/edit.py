"""Edits of a launch in its file: layout and comments stay, and the result is read again to prove the change.

An edit is made where the word stands. A word that is a variable used once is changed where the variable is set;
otherwise the variable is replaced at its use. A change that cannot be proved by reading the new text is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from planner._record import record
from planner.errors import InputError, Problem
from planner.parse.encoding import encode
from planner.parse.env_layout import added_env, changed_env, removed_env
from planner.parse.layout import Piece, added_flag, removed, resized
from planner.parse.model import EnvHow, EnvSetting, Flag, ParsedFile, ParsedLaunch, Token
from planner.parse.reading import parse_text

__all__ = ["Edit", "RemoveEnv", "RemoveFlag", "SetEnv", "SetFlag", "apply_edit", "apply_edits", "unified_diff"]


@record()
class SetFlag:
    """Gives an option these values; no value makes it a bare option. ``names`` are other spellings to look for."""

    name: str
    values: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@record()
class RemoveFlag:
    """Takes every occurrence of an option away."""

    name: str
    names: tuple[str, ...] = ()


@record()
class SetEnv:
    """Gives an environment variable a value."""

    name: str
    value: str


@record()
class RemoveEnv:
    """Takes an environment variable away."""

    name: str


Edit = SetFlag | RemoveFlag | SetEnv | RemoveEnv


def apply_edits(parsed: ParsedFile, launch: int, edits: Sequence[Edit]) -> str:
    """The text of ``parsed`` with the edits made at its ``launch``-th launch. What changes nothing leaves it as it is.

    Raises:
        InputError: an edit cannot be made or proved; the problem names it, with file and line.
    """
    current, index = parsed, launch
    for edit in edits:
        current, index = apply_edit(current, index, edit)
    return current.text


def unified_diff(before: str, after: str, *, name: str) -> str:
    """The change as a unified diff; empty when there is none."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def apply_edit(parsed: ParsedFile, index: int, edit: Edit) -> tuple[ParsedFile, int]:
    """The file with one edit made at its ``index``-th launch, read again, and where that launch is now.

    Branches that no longer differ become one launch, so the index can change.

    Raises:
        InputError: as :func:`apply_edits`.
    """
    launch = parsed.launches[index]
    if _holds(launch, edit):
        return parsed, index
    reason = "the edit does not lead to the launch that was asked for"
    for pieces in _attempts(parsed.text, launch, edit):
        try:
            text = _written(parsed.text, pieces())
        except InputError as fault:
            reason = fault.problems[0].message
            continue
        form = parsed.form.value if parsed.form is not None else None
        again = parse_text(text, name=parsed.name, form=form)
        found = _proved(parsed, again, index, edit)
        if found is not None:
            return again, found
    raise InputError(
        [Problem(reason, file=parsed.name, line=launch.span.line, field=edit.name, hint="edit it by hand")]
    )


class _Pieces:
    """Pieces computed when asked for, so that one impossible way does not stop the others."""

    def __init__(self, make: object, *arguments: object) -> None:
        self.make, self.arguments = make, arguments

    def __call__(self) -> list[Piece]:
        assert callable(self.make)
        made: list[Piece] = self.make(*self.arguments)
        return made


def _attempts(text: str, launch: ParsedLaunch, edit: Edit) -> list[_Pieces]:
    """Ways to make an edit, the best first."""
    if isinstance(edit, SetEnv):
        setting = _setting(launch, edit.name)
        if setting is not None and setting.how is not EnvHow.PLAIN:
            return [_Pieces(changed_env, setting, edit.value)]
        return [_Pieces(added_env, text, launch, edit.name, edit.value, style) for style in ("near", "prefix", "env")]
    if isinstance(edit, RemoveEnv):
        setting = _setting(launch, edit.name)
        return [] if setting is None else [_Pieces(removed_env, text, setting)]
    flags = _found(launch, edit)
    if isinstance(edit, RemoveFlag):
        return [_Pieces(_flags_removed, text, launch, flags)]
    if not flags:
        return [_Pieces(added_flag, text, launch, edit.name, edit.values, at) for at in ("inside", "last", "first")]
    last, others = flags[-1], _Pieces(_flags_removed, text, launch, flags[:-1])
    if len(last.values) == len(edit.values) or (last.joined and len(edit.values) == 1):
        return [
            _Pieces(_replaced, text, launch, last, edit.values, others, way) for way in ("definition", "use", "word")
        ]
    return [_Pieces(_resized, text, launch, last, edit.values, others)]


def _found(launch: ParsedLaunch, edit: SetFlag | RemoveFlag) -> list[Flag]:
    names = {edit.name, *edit.names}
    return [flag for flag in (*launch.switched_off, *launch.flags) if flag.name in names]


def _setting(launch: ParsedLaunch, name: str) -> EnvSetting | None:
    return next((item for item in reversed(launch.env) if item.name == name), None)


def _flags_removed(text: str, launch: ParsedLaunch, flags: Sequence[Flag]) -> list[Piece]:
    return [piece for flag in flags for piece in removed(text, launch, flag)]


def _replaced(
    text: str, launch: ParsedLaunch, flag: Flag, values: Sequence[str], others: _Pieces, way: str
) -> list[Piece]:
    pieces = others()
    if flag.joined and way == "word":
        token = flag.token
        return [*pieces, (token.start, token.end, encode(f"{flag.name}={values[0]}", token.layers, raw=token.raw))]
    for token, value in zip(flag.values, values, strict=True):
        if token.text == value:
            continue
        start, end, layers = token.start, token.end, token.layers
        if way == "definition" and token.defined is not None and _used_once(text, token):
            start, end = token.defined.start, token.defined.end
        elif flag.joined and any(layer.startswith("whole-") for layer in layers):
            start, end = flag.token.start, flag.token.end
            value = f"{flag.name}={value}"
        pieces.append((start, end, encode(value, layers, raw=text[start:end], keyed=launch.keyed)))
    return pieces


def _resized(text: str, launch: ParsedLaunch, flag: Flag, values: Sequence[str], others: _Pieces) -> list[Piece]:
    return [*others(), *resized(text, launch, flag, values)]


def _used_once(text: str, token: Token) -> bool:
    match = re.search(r"[A-Za-z_]\w*", token.raw)
    if match is None:
        return False
    name = match.group()
    uses = len(re.findall(rf"\$\{{?{name}\b", text)) or len(re.findall(rf"\b{name}\b", text)) - 1
    return uses == 1 and len(re.findall(rf"(?<![\w$-]){name}\s*\+?=(?!=)", text)) <= 1


def _written(text: str, pieces: Sequence[Piece]) -> str:
    for start, end, new in sorted(pieces, key=lambda piece: (piece[0], piece[1]), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _holds(launch: ParsedLaunch, edit: Edit) -> bool:
    if isinstance(edit, SetEnv):
        setting = _setting(launch, edit.name)
        return setting is not None and setting.exported and setting.value.text == edit.value
    if isinstance(edit, RemoveEnv):
        return _setting(launch, edit.name) is None
    flags = [flag for flag in _found(launch, edit) if flag not in launch.switched_off]
    if isinstance(edit, RemoveFlag):
        return not flags
    return len(flags) == 1 and tuple(value.text for value in flags[0].values) == edit.values


def _proved(before: ParsedFile, after: ParsedFile, index: int, edit: Edit) -> int | None:
    """Index of the edited launch when the new text differs from the old in what was asked and in nothing else.

    Branches of the same command may change with it, and branches that no longer differ become one.
    """
    if after.problems != before.problems:
        return None
    target = before.launches[index]
    group = target.group
    others = [[_rest(launch, None) for launch in file.launches if launch.group != group] for file in (before, after)]
    if others[0] != others[1]:
        return None
    allowed = {_rest(launch, edit) for launch in before.launches if launch.group == group}
    branches = [(at, launch) for at, launch in enumerate(after.launches) if launch.group == group]
    if any(_rest(launch, edit) not in allowed for _, launch in branches):
        return None
    wanted = _rest(target, edit)
    return next((at for at, launch in branches if _holds(launch, edit) and _rest(launch, edit) == wanted), None)


def _rest(launch: ParsedLaunch, edit: Edit | None) -> tuple[object, ...]:
    """What an edit must leave as it is."""
    names = {edit.name, *edit.names} if isinstance(edit, SetFlag | RemoveFlag) else set()
    variable = edit.name if isinstance(edit, SetEnv | RemoveEnv) else None
    flags = sorted(
        (flag.name, tuple(_seen(value) for value in flag.values)) for flag in launch.flags if flag.name not in names
    )
    env = sorted((item.name, _seen(item.value), item.how.value) for item in launch.env if item.name != variable)
    return launch.launcher, tuple(flags), tuple(env), launch.form, len(launch.lost)


def _seen(token: Token) -> str:
    return token.text if token.text is not None else f"?{token.raw}"
