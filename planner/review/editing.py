"""From the edits of findings to edits of a file: the right spelling for the version, renames, environment."""

from __future__ import annotations

from collections.abc import Sequence

from planner._record import record
from planner.domain import FixEdit
from planner.engine.flags import flag_table, flag_versions
from planner.engine.spelling import dest_in_version, field_of_dest
from planner.errors import InputError, Problem
from planner.parse import Flag, ParsedFile, ParsedLaunch, parse_text
from planner.parse.edit import Edit, RemoveEnv, RemoveFlag, SetEnv, SetFlag, apply_edits
from planner.rules.context import RuleContext

__all__ = ["edit_file", "spell"]


@record()
class Rename:
    """Another spelling for a flag that keeps its values."""

    old: str
    new: str


def edit_file(parsed: ParsedFile, index: int, edits: Sequence[FixEdit], context: RuleContext) -> ParsedFile:
    """The file after the edits at its ``index``-th launch, read again.

    Raises:
        InputError: an edit cannot be written in this file.
    """
    current, at = parsed, index
    for edit in edits:
        wanted = spell(edit, context)
        if isinstance(wanted, Rename):
            current = _renamed(current, at, wanted)
            continue
        text = apply_edits(current, at, [wanted])
        if text != current.text:
            current = _read(current, text)
            at = min(at, len(current.launches) - 1)
    return current


def spell(edit: FixEdit, context: RuleContext) -> Edit | Rename:
    """The edit with the names of the launch's engine version."""
    name, value = edit.field, edit.value
    if name.startswith("$"):
        return RemoveEnv(name[1:]) if value is None else SetEnv(name[1:], str(value))
    if not name[:1].isalnum():
        return RemoveFlag(name) if value is None else Rename(name, str(value))
    names = _spellings(name, context)
    if value is None or value is False:
        return RemoveFlag(names[0], names)
    if value is True:
        return SetFlag(names[0], (), names)
    values = tuple(str(item) for item in value) if isinstance(value, tuple) else (str(value),)
    return SetFlag(names[0], values, names)


def _spellings(field: str, context: RuleContext) -> tuple[str, ...]:
    """The name to write first, then every other name that the launch may use for the field."""
    written = [given.flag for given in context.flags if given.field == field]
    found: list[str] = []
    for version in reversed(context.tables or tuple(flag_versions())):
        table = flag_table(version)
        dest = dest_in_version(field, table)
        if dest is not None:
            found += [table.by_dest[dest].names[0]]
            found += [flag for spec in table.flags if field_of_dest(spec.dest, table) == field for flag in spec.names]
    plain = "--" + field.replace("_", "-")
    under = "--" + field
    first = written[-1:] or found[:1] or [plain]
    return tuple(dict.fromkeys([*first, *written, *found, plain, under]))


def _renamed(parsed: ParsedFile, index: int, rename: Rename) -> ParsedFile:
    """Writes the new name over the old at every occurrence in the launch."""
    launch = parsed.launches[index]
    text = parsed.text
    spots = sorted({spot for flag in _flags(launch, rename.old) if (spot := _spot(text, flag, rename.old)) is not None})
    if not spots:
        raise InputError([Problem(f"{rename.old} cannot be rewritten here", file=parsed.name, line=launch.span.line)])
    for spot in reversed(spots):
        text = text[:spot] + rename.new + text[spot + len(rename.old) :]
    return _read(parsed, text)


def _flags(launch: ParsedLaunch, name: str) -> list[Flag]:
    found = [flag for flag in launch.flags if flag.name == name]
    if found:
        return found
    return [
        Flag(name, token, (), joined=False)
        for token in launch.argv
        if token.text is not None and token.text.startswith(name)
    ]


def _spot(text: str, flag: Flag, name: str) -> int | None:
    """Offset of the name inside its token."""
    at = text.find(name, flag.token.start, flag.token.end)
    return at if at >= 0 else None


def _read(parsed: ParsedFile, text: str) -> ParsedFile:
    return parse_text(text, name=parsed.name, form=parsed.form.value if parsed.form is not None else None)
