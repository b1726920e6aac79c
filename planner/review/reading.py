"""The words of a launch as the engine's parser reads them, in every version that the launch may run on."""

from __future__ import annotations

from collections.abc import Sequence

from planner._record import record
from planner.engine.argv import ArgvFault, ArgvProblem, ReadArgv, read_argv
from planner.engine.dialects import DIALECTS, get_dialect
from planner.engine.flag_table import FlagKind, FlagTable
from planner.engine.flags import flag_table, flag_versions
from planner.engine.spelling import field_of_dest
from planner.engine.version import parse_engine_version
from planner.parse import ParsedLaunch, Token
from planner.rules.base import Place
from planner.rules.context import FaultKind, FlagFault, Given
from planner.rules.versions import VersionSpan

__all__ = ["Reading", "read_launch", "tables_for"]

_KINDS = {
    ArgvFault.UNKNOWN_FLAG: FaultKind.UNKNOWN,
    ArgvFault.VLLM_FLAG: FaultKind.UNKNOWN,
    ArgvFault.AMBIGUOUS_PREFIX: FaultKind.AMBIGUOUS,
    ArgvFault.BAD_CHOICE: FaultKind.BAD_CHOICE,
    ArgvFault.BAD_TYPE: FaultKind.BAD_TYPE,
    ArgvFault.MISSING_VALUE: FaultKind.MISSING_VALUE,
    ArgvFault.UNEXPECTED_VALUE: FaultKind.POSITIONAL,
    ArgvFault.REFUSED_FLAG: FaultKind.REFUSED,
}
_DRIFTS = frozenset({FaultKind.AMBIGUOUS, FaultKind.BAD_CHOICE, FaultKind.REFUSED})
"""Faults that an engine older than every flag table need not have: prefixes and choices became more with time."""
_NO_NUMBER = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan", "+nan", "-nan"})
"""Words that Python reads as floats and that no argument can mean: taken as values that are not known."""
_TAKES_VALUE = (FlagKind.VALUE, FlagKind.LIST, FlagKind.CONST_OF_VALUE)


@record()
class Reading:
    """A launch read with the table that fits best."""

    read: ReadArgv
    flags: tuple[Given, ...]
    faults: tuple[FlagFault, ...]
    tables: tuple[str, ...]
    open_ended: bool


def tables_for(span: VersionSpan, dialect: str | None = None) -> tuple[str, ...]:
    """Flag tables that may stand for a span, oldest first: a release between two tables may have either's flags."""
    from packaging.version import Version

    names = flag_versions()
    if not span.stated:
        return (get_dialect(dialect).base_version,) if dialect is not None and dialect != "upstream" else tuple(names)
    chosen: set[str] = set()
    for release in span.releases:
        version = Version(release)
        older = [name for name in names if Version(name) <= version]
        newer = [name for name in names if Version(name) > version]
        chosen.add(older[-1] if older else names[0])
        if older and Version(older[-1]) != version and newer:
            chosen.add(newer[0])
    return tuple(name for name in names if name in chosen)


def read_launch(launch: ParsedLaunch, *, span: VersionSpan, dialect: str | None) -> Reading:
    """Reads the words with every table that may apply. The reading with the fewest faults is kept, the newest of
    equals; its faults are certain when every other reading has them too."""
    words, owners = _words(launch)
    names = flag_versions()
    tables = tuple(name for name in tables_for(span, dialect) if name in names) or tuple(names)
    speaks = dialect or _dialect_of(words)
    readings: dict[str, ReadArgv] = {}
    for name in reversed(tables):
        readings[name] = read_argv(words, version=parse_engine_version(name), dialect=speaks)
        if not span.stated and not readings[name].problems:
            break  # the newest version takes it all, and no other is stated
    readings = {name: readings[name] for name in tables if name in readings}
    best = min(reversed(readings), key=lambda name: len(readings[name].problems))
    table = _extended(flag_table(best), speaks)
    newest, older = flag_table(names[-1]), span.within(f"<{names[0]}") is True
    faults = _faults(readings, best, words, owners, (table, newest), older=older)
    return Reading(
        read=readings[best],
        flags=tuple(_given(words, owners, table, keyed=launch.keyed)),
        faults=faults,
        tables=tables,
        open_ended=_open_ended(words, owners, table),
    )


def _words(launch: ParsedLaunch) -> tuple[list[str | None], list[Token]]:
    """Words for the parser and the token of each. ``--port=$PORT`` becomes a flag and an unknown value."""
    words: list[str | None] = []
    owners: list[Token] = []

    def add(word: str | None, token: Token) -> None:
        words.append(None if word is not None and word.lower() in _NO_NUMBER else word)
        owners.append(token)

    for token in launch.argv:
        text = token.text
        if text is None and token.lead.startswith("--") and "=" in token.lead:
            add(_name(token.lead.partition("=")[0], launch), token)
            add(None, token)
        elif text is not None and text.startswith("--"):
            name, equals, value = text.partition("=")
            if value.lower() in _NO_NUMBER:
                add(_name(name, launch), token)
                add(None, token)
            else:
                add(_name(name, launch) + equals + value, token)
        else:
            add(text, token)
    return words, owners


def _name(name: str, launch: ParsedLaunch) -> str:
    """Keys such as ``tp_size`` are field names: underscores are right there."""
    return name.replace("_", "-") if launch.keyed else name


def _dialect_of(words: Sequence[str | None]) -> str | None:
    """A dialect whose own flags stand in the launch."""
    given = {word.partition("=")[0] for word in words if word is not None and word.startswith("--")}
    return next((one.id for one in DIALECTS.values() if given & {flag.name for flag in one.flags}), None)


def _extended(table: FlagTable, dialect: str | None) -> FlagTable:
    extra = get_dialect(dialect).flag_specs if dialect is not None else ()
    return table.replace(flags=table.flags + extra) if extra else table


def _place(token: Token) -> Place:
    return Place(token.line, token.column)


def _faults(
    readings: dict[str, ReadArgv],
    best: str,
    words: Sequence[str | None],
    owners: Sequence[Token],
    tables: tuple[FlagTable, FlagTable],
    *,
    older: bool,
) -> tuple[FlagFault, ...]:
    chosen = readings[best]
    spots = {name: {problem.index for problem in read.problems} for name, read in readings.items()}
    found: list[FlagFault] = []
    for problem in chosen.problems:
        certain = all(problem.index in spot for spot in spots.values())
        certain = certain and not (older and _KINDS[problem.fault] in _DRIFTS)
        found.append(_fault(problem, words, owners, certain=certain))
    seen = {problem.index for problem in chosen.problems}
    for name in reversed(readings):
        for problem in readings[name].problems:
            if problem.index not in seen and problem.fault is not ArgvFault.UNEXPECTED_VALUE:
                seen.add(problem.index)
                found.append(_fault(problem, words, owners, certain=False))
    for index, word in enumerate(words):
        if word is None or index in seen or not word.startswith("--"):
            continue
        flag = word.partition("=")[0]
        if flag in chosen.abbreviated:
            found.append(
                FlagFault(
                    FaultKind.ABBREVIATED,
                    flag,
                    f"{flag} is an abbreviation",
                    options=(chosen.abbreviated[flag],),
                    place=_place(owners[index]),
                )
            )
        elif flag in chosen.deprecated:
            newer = chosen.deprecated[flag]
            found.append(
                FlagFault(
                    FaultKind.DEPRECATED,
                    flag,
                    f"{flag} is deprecated",
                    options=(newer,) if newer.startswith("--") else (),
                    place=_place(owners[index]),
                )
            )
        elif (newer_name := _renamed(flag, *tables)) is not None:
            found.append(
                FlagFault(
                    FaultKind.DEPRECATED,
                    flag,
                    f"{flag} is gone in the newest version",
                    options=(newer_name,),
                    place=_place(owners[index]),
                )
            )
    return tuple(found)


def _renamed(flag: str, table: FlagTable, newest: FlagTable) -> str | None:
    """The newest name of a flag that the newest table no longer has."""
    spec = table.by_name.get(flag)
    if spec is None or flag in newest.by_name:
        return None
    new = newest.by_dest.get(field_of_dest(spec.dest, table))
    return new.names[0] if new is not None else None


def _fault(problem: ArgvProblem, words: Sequence[str | None], owners: Sequence[Token], *, certain: bool) -> FlagFault:
    word = words[problem.index] or problem.token
    flag, equals, inline = word.partition("=")
    following = words[problem.index + 1] if problem.index + 1 < len(words) else None
    value = inline if equals else (following if following is not None and not following.startswith("--") else None)
    kind = _KINDS[problem.fault]
    options: tuple[str, ...] = ()
    if problem.hint and problem.hint.startswith("did you mean "):
        options = tuple(problem.hint.removeprefix("did you mean ").rstrip("?").split(" or "))
    elif kind is FaultKind.AMBIGUOUS and "could match " in problem.message:
        options = tuple(problem.message.split("could match ", 1)[1].split(", "))
    text = problem.message if kind is not FaultKind.BAD_CHOICE or not problem.hint else str(problem)
    name = word if kind is FaultKind.POSITIONAL else flag
    return FlagFault(kind, name, text, value, options, _place(owners[problem.index]), certain)


def _spec_field(flag: str, table: FlagTable) -> str | None:
    spec = table.by_name.get(flag)
    if spec is None:
        matches = table.prefix_matches(flag) if len(flag) > 2 else []
        spec = table.by_name[matches[0]] if len(matches) == 1 else None
    return field_of_dest(spec.dest, table) if spec is not None else None


def _given(words: Sequence[str | None], owners: Sequence[Token], table: FlagTable, *, keyed: bool) -> list[Given]:
    found: list[Given] = []
    for index, word in enumerate(words):
        if word is None or not word.startswith("--") or len(word) < 3:
            continue
        flag, equals, inline = word.partition("=")
        values: list[str] = []
        unread = False
        if equals:
            values = [inline]
        else:
            for following in words[index + 1 :]:
                if following is not None and following.startswith("--") and len(following) > 2:
                    break
                unread = unread or following is None
                values += [following] if following is not None else []
        value = None if unread else " ".join(values)
        found.append(Given(flag, _spec_field(flag, table), value, _place(owners[index]), owners[index].by_default))
    return found


def _open_ended(words: Sequence[str | None], owners: Sequence[Token], table: FlagTable) -> bool:
    """Whether a word that cannot be read is not the value of a flag: it may hold flags."""
    for index, word in enumerate(words):
        if word is not None:
            continue
        before = words[index - 1] if index else None
        if before is not None and before.startswith("--") and "=" not in before:
            spec = table.by_name.get(before)
            if spec is None:
                matches = table.prefix_matches(before) if len(before) > 2 else []
                spec = table.by_name[matches[0]] if len(matches) == 1 else None
            if spec is None or spec.kind in _TAKES_VALUE:
                continue
        if owners[index].lead.startswith("--") and "=" in owners[index].lead:
            continue
        return True
    return False
