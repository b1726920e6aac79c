"""Command lines as settings: what two of them differ in, and one with some of the differences made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.domain import Launch, Value
from planner.errors import InputError, Problem

__all__ = ["Setting", "apply_changes", "changes_between", "knobs_between", "read_commands", "settings_of"]

_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_DRAFT = "--speculative-"
_FORM = frozenset(
    f"{_DRAFT}{name}"
    for name in (
        "algorithm",
        "draft-model-path",
        "draft-model-revision",
        "num-steps",
        "eagle-topk",
        "num-draft-tokens",
        "ddtree-budget",
        "ddtree-block-size",
        "dflash-block-size",
        "dspark-block-size",
    )
)
"""Flags that say what is drafted: a draft of another form or size moves several of them."""
_IGNORED = frozenset({"--port", "--host", "--log-level", "--served-model-name"})
"""Flags that do not change what the engine computes."""


class Setting(Value):
    """One difference: a flag or a variable of the environment. ``words`` is empty where it is absent."""

    name: str
    words: tuple[str, ...]
    """The flag with its values; the value of a variable."""
    is_env: bool = False

    @property
    def shown(self) -> str:
        """As a person writes it."""
        if not self.words:
            return f"without {self.name}"
        return f"{self.name}={self.words[0]}" if self.is_env else " ".join(self.words)


def settings_of(argv: Sequence[str]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """(words before the first flag, flag -> its words). A flag given twice counts once: the last, as argparse does."""
    words = list(argv)
    start = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
    flags: dict[str, tuple[str, ...]] = {}
    position = start
    while position < len(words):
        end = position + 1
        while end < len(words) and not words[end].startswith("--"):
            end += 1
        name = words[position].partition("=")[0]
        flags.pop(name, None)
        flags[name] = tuple(words[position:end])
        position = end
    return tuple(words[:start]), flags


def changes_between(good: Launch, bad: Launch) -> dict[str, Setting]:
    """What makes ``bad`` of ``good``, by name, in the order of ``bad``."""
    (_, ours), (_, theirs) = settings_of(good.argv), settings_of(bad.argv)
    changes = {
        name: Setting(name=name, words=theirs.get(name, ()))
        for name in (*theirs, *ours)
        if ours.get(name) != theirs.get(name) and name not in _IGNORED
    }
    mine, other = dict(good.env), dict(bad.env)
    for name in (*other, *mine):
        if mine.get(name) != other.get(name):
            changes[name] = Setting(name=name, words=(other[name],) if name in other else (), is_env=True)
    return changes


def apply_changes(good: Launch, changes: Sequence[Setting]) -> Launch:
    """``good`` with some changes made."""
    program, flags = settings_of(good.argv)
    env = dict(good.env)
    for change in changes:
        target: dict[str, tuple[str, ...]] | dict[str, str] = env if change.is_env else flags
        target.pop(change.name, None)
        if change.words and change.is_env:
            env[change.name] = change.words[0]
        elif change.words:
            flags[change.name] = change.words
    words = (word for group in flags.values() for word in group)
    return Launch(argv=(*program, *words), env=tuple(env.items()))


def read_commands(path: Path) -> list[Launch]:
    """Command lines of a file, one a line (a backslash continues it), ``NAME=value`` before the command.

    Raises:
        InputError: the file cannot be read, a line that is no command, or none at all; all faults at once.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError([Problem(reason or str(error), file=str(path), hint="give a file of command lines")]) from None
    launches: list[Launch] = []
    problems: list[Problem] = []
    for number, line in _logical_lines(text):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            problems.append(Problem(str(error), file=str(path), line=number, hint="close the quote"))
            continue
        env = []
        while words and _ASSIGNMENT.match(words[0]):
            name, _, value = words.pop(0).partition("=")
            env.append((name, value))
        if not words:
            if env:
                problems.append(Problem("a variable without a command", file=str(path), line=number))
            continue
        launches.append(Launch(argv=tuple(words), env=tuple(env)))
    if not launches and not problems:
        problems.append(
            Problem("no command line", file=str(path), hint="python -m sglang.launch_server --model-path ...")
        )
    if problems:
        raise InputError(problems)
    return launches


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """(number of the first line, text) with continued lines joined."""
    found: list[tuple[int, str]] = []
    held, start = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        start = start or number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        found.append((start, held + line))
        held, start = "", 0
    if held:
        found.append((start, held))
    return found


def knobs_between(launches: Sequence[Launch]) -> list[Mapping[str, str]]:
    """For each launch the flags and variables in which the launches differ.

    What is drafted is one knob, ``draft``, because its flags only make sense together; so are, where some launches do
    not speculate, all flags of speculation that those lack.
    """
    tables = []
    for launch in launches:
        _, flags = settings_of(launch.argv)
        table = {name: _value(words) for name, words in flags.items() if name not in _IGNORED}
        tables.append(table | {f"env {name}": value for name, value in launch.env})
    names = sorted({name for table in tables for name in table})
    varying = [name for name in names if len({table.get(name) for table in tables}) > 1]
    drafts = [
        name
        for name in varying
        if name in _FORM or (name.startswith(_DRAFT) and any(name not in table for table in tables))
    ]
    knobs: list[Mapping[str, str]] = []
    for table in tables:
        own = {name: table.get(name, "not given") for name in varying if name not in drafts}
        if drafts:
            given = [f"{name.removeprefix(_DRAFT)} {table[name]}" for name in drafts if name in table]
            own["draft"] = ", ".join(given) or "not given"
        knobs.append(own)
    return knobs


def _value(words: tuple[str, ...]) -> str:
    """What a flag is set to; ``on`` for a switch."""
    _, equals, value = words[0].partition("=")
    return " ".join([value, *words[1:]] if equals else words[1:]) or "on"
