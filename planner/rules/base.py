"""What a rule is, what it may look at and what it says.

A rule is engine logic that no number can express: what SGLang refuses, changes, ignores or is known to fail on. It
reads a :class:`planner.rules.context.RuleContext` and yields a :class:`Hit` for each fault. It decides neither level
nor place: the level follows from consequence, status and versions (:func:`level_of`), the place from the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from planner._record import record
from planner.domain import ArgValue, Consequence, FixEdit, Level

if TYPE_CHECKING:
    from planner.rules.context import RuleContext

__all__ = ["Example", "Hit", "Place", "Rule", "Status", "level_of", "set_field", "unset"]


class Status(StrEnum):
    """How sure a rule is."""

    ESTABLISHED = "established"
    """Read in source code, or seen by several parties, or root-caused."""
    SUSPECTED = "suspected"
    """One report, an open cause, or a fault that depends on the host."""


@record()
class Place:
    """A spot in the checked file, counted from 1."""

    line: int
    column: int


@record()
class Example:
    """A launch file with the options it is checked under. ``bad`` must fire its rule, ``good`` must not."""

    text: str
    form: str | None = None
    hw: str | None = None
    gpus: int | None = None
    model: str | None = None
    drafter: str | None = None
    version: str | None = None
    dialect: str | None = None

    def options(self) -> dict[str, str | int]:
        """Options of ``check`` that are set, by keyword."""
        named = {
            "form": self.form,
            "hw": self.hw,
            "gpus": self.gpus,
            "model": self.model,
            "drafter": self.drafter,
            "engine_version": self.version,
            "dialect": self.dialect,
        }
        return {name: value for name, value in named.items() if value is not None}


@record()
class Hit:
    """One fault. ``fields`` are arguments (or ``$NAME`` for environment, ``--flag`` for a flag as written); the first
    that stands in the file gives the place, unless ``place`` is set."""

    message: str
    fields: tuple[str, ...] = ()
    edits: tuple[FixEdit, ...] = ()
    fix_note: str | None = None
    safe: bool = True
    """False where the edit changes what the server does for users or needs a person's choice."""
    informs: bool = False
    """A note whatever the consequence."""
    suspected: bool = False
    """Softer than the rule: a fact that decides is missing here."""
    consequence: Consequence | None = None
    place: Place | None = None
    why: str | None = None
    sources: tuple[str, ...] = ()


@record()
class Rule:
    """One rule. ``bad`` and ``good`` are run by the tests and shown on the rule's page."""

    code: str
    slug: str
    title: str
    consequence: Consequence
    status: Status
    sources: tuple[str, ...]
    check: Callable[[RuleContext], Iterable[Hit]]
    doc: str
    """The module docstring: summary, then the headings ``What it checks``, ``Why``, ``Fix``, ``Known problems``."""
    bad: Example
    good: Example
    versions: str = ""
    """Engine versions on which it holds (a PEP 440 specifier); empty: every known version."""
    informs: bool = False
    """Every finding of this rule is a note."""
    per_file: bool = False
    """Compares the launches of a file: it runs once, on the first launch."""

    def sections(self) -> Mapping[str, str]:
        """Text under each heading of the docstring; the text above the first heading is ``summary``."""
        return _sections(self.doc)


HEADINGS = ("What it checks", "Why", "Fix", "Known problems")


def _sections(doc: str) -> dict[str, str]:
    found: dict[str, list[str]] = {"summary": []}
    here = "summary"
    for line in doc.strip().splitlines():
        if line.strip().rstrip(":") in HEADINGS and line.strip().endswith(":"):
            here = line.strip().rstrip(":")
            found[here] = []
        else:
            found[here].append(line.strip())
    return {name: " ".join(part for part in lines if part).strip() for name, lines in found.items()}


def level_of(rule: Rule, hit: Hit, *, version_known: bool) -> Level:
    """Level of a finding: consequences that stop or corrupt a server are errors, the rest warnings; one level lower
    where the evidence is suspected, and one where the fault is bound to versions and the version is unknown."""
    if rule.informs or hit.informs:
        return Level.NOTE
    level = Level.ERROR if (hit.consequence or rule.consequence).blocks else Level.WARNING
    if rule.status is Status.SUSPECTED or hit.suspected:
        level = level.softer
    if rule.versions and not version_known:
        level = level.softer
    return level


def set_field(name: str, value: ArgValue) -> FixEdit:
    """Edit: give the argument this value, adding it where it is missing."""
    return FixEdit(field=name, value=value)


def unset(name: str) -> FixEdit:
    """Edit: take the argument away."""
    return FixEdit(field=name, value=None)
