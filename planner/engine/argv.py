"""argv in and out. Reading follows Python's argparse as SGLang uses it (abbreviations on); writing emits whole names.

Reading reports every fault with the index of its token. Writing refuses an argument that the version does not have:
nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from pydantic import ValidationError

from planner._record import record
from planner.domain import ArgValue, LaunchConfig
from planner.engine.argv_values import ValueFault, looks_like_option, read_value, write_value
from planner.engine.dialects import Dialect, get_dialect
from planner.engine.flag_table import FlagKind, FlagSpec, FlagTable
from planner.engine.flags import SGLANG_TWIN, VLLM_FLAGS, flag_table, flag_versions
from planner.engine.spelling import dest_in_version, field_of_dest
from planner.engine.version import EngineVersion, parse_engine_version
from planner.errors import InputError, Problem, nearest_hint

__all__ = ["ArgvFault", "ArgvProblem", "ReadArgv", "read_argv", "split_program", "write_argv"]


class ArgvFault(StrEnum):
    """What is wrong with a token."""

    UNKNOWN_FLAG = "unknown_flag"
    VLLM_FLAG = "vllm_flag"
    AMBIGUOUS_PREFIX = "ambiguous_prefix"
    BAD_CHOICE = "bad_choice"
    BAD_TYPE = "bad_type"
    MISSING_VALUE = "missing_value"
    UNEXPECTED_VALUE = "unexpected_value"
    REFUSED_FLAG = "refused_flag"


@record()
class ArgvProblem:
    """A fault that makes the engine's parser exit with code 2."""

    fault: ArgvFault
    index: int
    """Index of the token."""
    token: str
    message: str
    hint: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


@record()
class ReadArgv:
    """A command line as the engine's parser reads it."""

    launch: LaunchConfig
    index: Mapping[str, int]
    """Field (or destination in extra_args) -> index of the token of its flag; the last one where it is repeated."""
    problems: tuple[ArgvProblem, ...]
    abbreviated: Mapping[str, str] = field(default_factory=dict)
    """Flag as written -> whole name, where argparse completed a prefix."""
    deprecated: Mapping[str, str] = field(default_factory=dict)
    """Flag as written -> its replacement (may be empty)."""
    repeated: tuple[str, ...] = ()
    """Fields given more than once: the last one counts."""


def split_program(tokens: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Splits ``python -m sglang.launch_server ARGS`` (or ``sglang serve ARGS``) into program and arguments."""
    for position, token in enumerate(tokens):
        if token in ("sglang.launch_server", "sglang.launch_server.py") or token.endswith("/launch_server.py"):
            return tuple(tokens[: position + 1]), tuple(tokens[position + 1 :])
        if token == "serve" and position and tokens[position - 1].rsplit("/", 1)[-1] == "sglang":
            return tuple(tokens[: position + 1]), tuple(tokens[position + 1 :])
    return (), tuple(tokens)


def read_argv(
    tokens: Sequence[str | None], *, version: EngineVersion | str | None = None, dialect: str | None = None
) -> ReadArgv:
    """Reads the arguments (without the program). A token None is a value that is not known, such as ``$TP``.

    Raises:
        InputError: the version or dialect is unknown. Faults in the tokens are returned, not raised.
    """
    engine = version if isinstance(version, EngineVersion) else parse_engine_version(version)
    table = _extended(flag_table(engine.table), get_dialect(dialect) if dialect else None)
    return _Reader(table, tokens).read()


def write_argv(
    launch: LaunchConfig, *, version: EngineVersion | str | None = None, dialect: str | None = None
) -> tuple[str, ...]:
    """Arguments for the version, each with its whole name, in the order of the fields.

    Raises:
        InputError: the version lacks an argument, or a value is not among its choices (all of them are named).
    """
    engine = version if isinstance(version, EngineVersion) else parse_engine_version(version)
    table = _extended(flag_table(engine.table), get_dialect(dialect) if dialect else None)
    argv: list[str] = []
    problems: list[Problem] = []
    for name, value in launch.given().items():
        dest = dest_in_version(name, table)
        if dest is None:
            problems.append(
                Problem(
                    f"SGLang {table.version} has no argument for it", field=name, value=value, hint=_elsewhere(name)
                )
            )
            continue
        try:
            argv += write_value(table.by_dest[dest], value)
        except ValueFault as fault:
            problems.append(Problem(str(fault), field=name, value=value))
    for name in sorted(launch.unknown):
        problems.append(Problem("its value is not known, so it cannot be written", field=name))
    if problems:
        raise InputError(problems)
    return tuple(argv)


def _elsewhere(name: str) -> str:
    """Which versions have the argument."""
    holders = [text for text in flag_versions() if dest_in_version(name, flag_table(text)) is not None]
    return f"it is in {', '.join(holders)}" if holders else "no known release has it"


def _extended(table: FlagTable, dialect: Dialect | None) -> FlagTable:
    """The table with the flags that the dialect's build adds."""
    extra = dialect.flag_specs if dialect is not None else ()
    return table.replace(flags=table.flags + extra) if extra else table


class _Reader:
    """One pass over the tokens, with argparse's own rules for what is a flag and what a value."""

    def __init__(self, table: FlagTable, tokens: Sequence[str | None]) -> None:
        self.table = table
        self.tokens = tokens
        self.values: dict[str, ArgValue] = {}
        self.unknown: set[str] = set()
        self.index: dict[str, int] = {}
        self.problems: list[ArgvProblem] = []
        self.abbreviated: dict[str, str] = {}
        self.deprecated: dict[str, str] = {}
        self.repeated: list[str] = []

    def read(self) -> ReadArgv:
        position = 0
        while position < len(self.tokens):
            token = self.tokens[position]
            if token is None or not self._looks_like_flag(token):
                if token is not None:
                    self._fault(ArgvFault.UNEXPECTED_VALUE, position, token, f"unrecognized arguments: {token}")
                position += 1
                continue
            position = self._flag(position, token)
        return ReadArgv(
            launch=self._launch(),
            index=self.index,
            problems=tuple(self.problems),
            abbreviated=self.abbreviated,
            deprecated=self.deprecated,
            repeated=tuple(dict.fromkeys(self.repeated)),
        )

    def _looks_like_flag(self, token: str) -> bool:
        if not token.startswith("-"):
            return False
        name = token.split("=", 1)[0]
        if token in self.table.by_name or name in self.table.by_name:
            return True
        if name.startswith("--") and len(name) > 2 and self.table.prefix_matches(name):
            return True
        return looks_like_option(token)

    def _flag(self, position: int, token: str) -> int:
        name, _, inline = token.partition("=")
        given = inline if "=" in token else None
        if token in self.table.by_name:
            name, given = token, None
        spec = self.table.by_name.get(name)
        if spec is None:
            matches = self.table.prefix_matches(name) if name.startswith("--") and len(name) > 2 else []
            if len(matches) == 1:
                spec = self.table.by_name[matches[0]]
                self.abbreviated[name] = matches[0]
            elif matches:
                text = f"ambiguous option: {token} could match {', '.join(matches)}"
                self._fault(ArgvFault.AMBIGUOUS_PREFIX, position, token, text, "write the whole name")
                return self._skip_values(position + 1)
            else:
                self._unknown_flag(position, name)
                return self._skip_values(position + 1)
        if spec.deprecated is not None:
            self.deprecated[name] = spec.deprecated
        return self._store(spec, name, given, position)

    def _unknown_flag(self, position: int, name: str) -> None:
        text = f"unrecognized arguments: {name}"
        if name in VLLM_FLAGS:
            twin = SGLANG_TWIN.get(name)
            hint = f"it is vLLM's; SGLang's is {twin}" if twin else "it is vLLM's"
            self._fault(ArgvFault.VLLM_FLAG, position, name, text, hint)
            return
        elsewhere = [v for v in flag_versions() if name in flag_table(v).by_name]
        if elsewhere:
            hint = f"SGLang {self.table.version} does not have it, {', '.join(elsewhere)} do"
        else:
            hint = nearest_hint(name, sorted(self.table.by_name)) if name.startswith("--") else "not an option"
            hint = hint if not hint.startswith("known:") else "no option of SGLang is near"
        self._fault(ArgvFault.UNKNOWN_FLAG, position, name, text, hint)

    def _skip_values(self, position: int) -> int:
        while position < len(self.tokens):
            token = self.tokens[position]
            if token is not None and self._looks_like_flag(token):
                break
            position += 1
        return position

    def _store(self, spec: FlagSpec, name: str, given: str | None, position: int) -> int:
        dest = field_of_dest(spec.dest, self.table)
        raw: list[str | None] = []
        following = position + 1
        if given is not None:
            raw = [given]
        elif spec.kind in (FlagKind.VALUE, FlagKind.LIST, FlagKind.CONST_OF_VALUE):
            limit = 1 if spec.kind is not FlagKind.LIST and spec.nargs in (None, "?") else len(self.tokens)
            while following < len(self.tokens) and len(raw) < limit:
                token = self.tokens[following]
                if token is not None and self._looks_like_flag(token):
                    break
                raw.append(token)
                following += 1
        if dest in self.index:
            self.repeated.append(dest)
        self.index[dest] = position
        self.values.pop(dest, None)
        self.unknown.discard(dest)
        if spec.kind is FlagKind.REFUSED:
            self._fault(ArgvFault.REFUSED_FLAG, position, name, spec.deprecated or f"{name} was removed", None, dest)
        elif any(item is None for item in raw):
            self.unknown.add(dest)
        else:
            try:
                value = read_value(spec, name, [item for item in raw if item is not None], explicit=given is not None)
            except ValueFault as fault:
                self._fault(ArgvFault(fault.code), position, name, str(fault), fault.hint, dest)
            else:
                if value is not None:
                    self.values[dest] = value
        return following

    def _fault(
        self,
        fault: ArgvFault,
        index: int,
        token: str,
        message: str,
        hint: str | None = None,
        dest: str | None = None,
    ) -> None:
        self.problems.append(ArgvProblem(fault, index, token, message, hint, dest))

    def _launch(self) -> LaunchConfig:
        own = {name: value for name, value in self.values.items() if name in _FIELDS}
        extra = [(name, value) for name, value in self.values.items() if name not in _FIELDS]
        while True:
            try:
                return LaunchConfig(**own, extra_args=tuple(extra), unknown=frozenset(self.unknown))
            except ValidationError as error:  # a type of this version that the newest table does not share
                moved = [name for name in _first_words(error) if name in own]
                if not moved:
                    raise
                extra += [(name, own.pop(name)) for name in moved]


_FIELDS = frozenset(LaunchConfig.model_fields) - {"extra_args", "env", "unknown"}


def _first_words(error: ValidationError) -> Iterable[str]:
    return dict.fromkeys(str(item["loc"][0]) for item in error.errors() if item["loc"])
