"""What a launch file says: launches with the exact place of every token, and what could not be read.

Offsets (``start``, ``end``) count characters of :attr:`ParsedFile.text` from 0; lines and columns count from 1.
For every token ``text[token.start:token.end] == token.raw``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from planner._record import record
from planner.errors import Problem

__all__ = [
    "ContainerFacts",
    "EnvHow",
    "EnvSetting",
    "Flag",
    "Form",
    "JobFacts",
    "Launcher",
    "Note",
    "NoteKind",
    "ParsedFile",
    "ParsedLaunch",
    "ParsedTree",
    "Role",
    "Skipped",
    "Span",
    "Suppression",
    "Token",
]


class Form(StrEnum):
    """How a launch is written down."""

    SHELL = "shell"
    DOCKERFILE = "dockerfile"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"
    SYSTEMD = "systemd"
    RECIPE = "recipe"
    PYTHON = "python"
    JSON = "json"
    ARGV = "argv"


class Launcher(StrEnum):
    """What is started. ``router`` starts no engine and is kept for the roles of a file."""

    LAUNCH_SERVER = "launch_server"
    SERVE = "serve"
    DYNAMO = "dynamo"
    ENGINE = "engine"
    ROUTER = "router"


class Role(StrEnum):
    """Part of a disaggregated deployment that a launch plays."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGGREGATED = "aggregated"
    ENCODE = "encode"
    DRAFT = "draft"
    ROUTER = "router"


class EnvHow(StrEnum):
    """How a variable is set. ``plain`` is a shell variable that the server never sees."""

    EXPORT = "export"
    PREFIX = "prefix"
    PLAIN = "plain"
    CONTAINER = "container"
    SYSTEMD = "systemd"


class NoteKind(StrEnum):
    """Faults of writing that change what the launcher receives."""

    COMMENT_AFTER_BACKSLASH = "comment-after-backslash"
    SPACE_AFTER_BACKSLASH = "space-after-backslash"
    COMMENT_IN_CONTINUATION = "comment-in-continuation"
    MISSING_BACKSLASH = "missing-backslash"
    NO_BACKSLASH = "no-backslash"
    UNQUOTED_JSON = "unquoted-json"


@record()
class Span:
    """A stretch of the file's text."""

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


@record()
class Token:
    """One word of a command as the program receives it, and where it stands.

    A word that comes from an array or from a variable holding several words stands where that array or variable is
    defined; a word with a single variable in it stands where it is used.
    """

    text: str | None
    """The word after expansion; None when a part of it cannot be resolved."""
    raw: str
    """The characters of the file."""
    line: int
    column: int
    end_line: int
    end_column: int
    known: bool
    start: int = 0
    end: int = 0
    lead: str = ""
    """Known text before the first part that cannot be resolved: ``--port=`` of ``--port=$PORT``. Empty when known."""
    value_start: int | None = None
    """Offset of the first character after ``=`` of a ``--flag=value`` word."""
    value_end: int | None = None
    splits: bool = False
    """An unquoted ``$X`` of unknown value: it may become no word, one or many."""
    by_default: bool = False
    """The text rests on the default of a ``${X:-default}``, which the caller's environment may override."""
    alternatives: tuple[str, ...] = ()
    """Values that an unknown word takes on the branches of the file, when all of them are known."""
    defined: Span | None = None
    """Where the text of a word made of a single variable is written."""
    layers: tuple[str, ...] = ()
    """Quotings around the word, innermost first: what an edit has to write."""


@record()
class Flag:
    """An option and its values. ``joined`` tells ``--a=b`` from ``--a b``."""

    name: str
    token: Token
    values: tuple[Token, ...]
    joined: bool

    @property
    def value(self) -> str | None:
        """Text of the first value; None without a value or when it is unknown."""
        return self.values[0].text if self.values else None


@record()
class EnvSetting:
    """One environment variable that the file sets for a launch."""

    name: str
    value: Token
    exported: bool
    how: EnvHow
    name_token: Token | None = None
    file: str | None = None
    """The file that sets it, when it is another one: the unit of a drop-in."""


@record()
class ContainerFacts:
    """What surrounds a launch that runs in a container. None: not said."""

    image: Token | None = None
    gpus: str | None = None
    """As written: ``all``, a count, or ``device=0,1``."""
    n_gpus: int | None = None
    shm_bytes: int | None = None
    shm_mounted: bool = False
    """A volume is mounted at /dev/shm."""
    ipc_host: bool = False
    network_host: bool = False
    privileged: bool = False


@record()
class JobFacts:
    """Size that a batch system or a cluster gives to the launch. None: not said."""

    nodes: int | None = None
    gpus_per_node: int | None = None
    tasks_per_node: int | None = None


@record()
class Note:
    """A fault of writing. The flags it takes away are in :attr:`ParsedLaunch.lost`."""

    kind: NoteKind
    message: str
    line: int
    column: int


@record()
class ParsedLaunch:
    """One start of a server, as written."""

    launcher: Launcher
    argv: tuple[Token, ...]
    """Words after the launcher, in order."""
    env: tuple[EnvSetting, ...]
    container: ContainerFacts | None
    role: Role | None
    condition: str | None
    """Conditions under which the launch runs like this, as written; None: always."""
    span: Span
    form: Form
    name: str | None = None
    """Service, container, unit or function that holds the launch."""
    program: tuple[Token, ...] = ()
    """Words of the launcher itself: ``python3 -m sglang.launch_server``."""
    keyed: bool = False
    """The flags come from keys (``tp_size: 8``), so their names are field names as often as option names."""
    switched_off: tuple[Flag, ...] = ()
    """Keys set to false or null: no flag is passed for them."""
    lost: tuple[Token, ...] = ()
    """Words after a broken line continuation, which the server does not receive."""
    notes: tuple[Note, ...] = ()
    job: JobFacts | None = None
    image: Token | None = None
    """Image of the container, else the only image that the file names."""
    group: int = 0
    """Launches with the same group are one command on different branches."""

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Options with their values, in order. A word after an option that does not begin with ``--`` is its value."""
        return tuple(_flags(self.argv))

    def flag(self, *names: str) -> Flag | None:
        """The last option with one of ``names`` (the engine keeps the last), or None."""
        found = None
        for flag in self.flags:
            if flag.name in names:
                found = flag
        return found


@record()
class Suppression:
    """``# plan-config: ignore=CODE reason``. It covers its own line, and the next when it stands alone on its line."""

    codes: tuple[str, ...]
    reason: str
    line: int
    own_line: bool


@record()
class Skipped:
    """A file that was not read, and why."""

    path: str
    reason: str


@record()
class ParsedFile:
    """All that was read from one file. ``problems`` makes it unreadable in part or whole (exit code 2)."""

    name: str
    text: str
    form: Form | None
    launches: tuple[ParsedLaunch, ...] = ()
    problems: tuple[Problem, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    images: tuple[Token, ...] = ()
    """Every engine image or ``sglang==version`` pin that the file names."""


@record()
class ParsedTree:
    """What a walk over files and directories gave."""

    files: tuple[ParsedFile, ...]
    skipped: tuple[Skipped, ...]


def _flags(argv: tuple[Token, ...]) -> Iterator[Flag]:
    index = 0
    while index < len(argv):
        token = argv[index]
        index += 1
        known = token.text if token.text is not None else token.lead
        if not known.startswith("--") or known == "--":
            continue
        name, equals, rest = known.partition("=")
        if equals:
            yield Flag(name, token, (_value_of(token, rest),), joined=True)
            continue
        values = []
        while index < len(argv) and not _opens_flag(argv[index]):
            values.append(argv[index])
            index += 1
        yield Flag(name, token, tuple(values), joined=False)


def _opens_flag(token: Token) -> bool:
    if token.text is None:
        return token.lead.startswith("--")
    return token.text.startswith("--") and len(token.text) > 2


def _value_of(token: Token, rest: str) -> Token:
    from dataclasses import replace

    start, end = token.value_start, token.value_end
    if start is None or end is None or "\n" in token.raw:
        return replace(token, text=rest if token.known else None, lead="" if token.known else rest)
    shift = start - token.start
    raw = token.raw[shift : end - token.start]
    column = token.column + shift
    return replace(
        token,
        text=rest if token.known else None,
        lead="" if token.known else rest,
        raw=raw,
        start=start,
        end=end,
        column=column,
        end_line=token.line,
        end_column=column + len(raw),
        value_start=None,
        value_end=None,
    )
