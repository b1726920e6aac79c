"""upgrade(): a launch rewritten for another engine version, and what changes in effect by the move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner._record import record
from planner.domain import FixEdit
from planner.errors import InputError, Problem
from planner.parse import Launcher, ParsedFile
from planner.parse.edit import unified_diff
from planner.review.context import build_contexts
from planner.review.editing import edit_file
from planner.review.subject import Subject
from planner.rules import Hit, rule_of
from planner.rules.context import RuleContext
from planner.rules.versions import VersionSpan, span_of

__all__ = ["Effect", "Rewritten", "Upgraded", "upgrade"]

_REWRITERS = ("FLG004", "FLG010", "ENV001")
"""Rules whose fixes carry a launch to another version: removed, renamed, no longer read."""


@record()
class Rewritten:
    """One rewritten word."""

    line: int
    message: str
    edits: tuple[FixEdit, ...]
    safe: bool


@record()
class Effect:
    """A value that the engine runs differently after the move, although the launch asks for the same."""

    line: int
    field: str
    before: object
    after: object


@record()
class Upgraded:
    """A launch file carried to another version."""

    before: ParsedFile
    after: ParsedFile
    target: VersionSpan
    rewritten: tuple[Rewritten, ...]
    left: tuple[str, ...]
    """Words that the target does not take and that nothing replaces."""
    effects: tuple[Effect, ...]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The new text."""
        return self.after.text

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty when nothing changes."""
        return unified_diff(self.before.text, self.after.text, name=self.before.name.lstrip("/"))


def upgrade(parsed: ParsedFile, to: str, *, subject: Subject) -> Upgraded:
    """Carries every launch of a file to the engine version ``to``.

    Effects are told where a machine is named (``subject.hardware``): the engine's picture is asked before and after.

    Raises:
        InputError: ``to`` names no release.
    """
    target = span_of(to)
    if len(target.releases) != 1:
        raise InputError([Problem("names no release", field="--to", value=to, hint="give one such as 0.5.23")])
    there = replace(subject, version=target)
    current = parsed
    rewritten: list[Rewritten] = []
    left: list[str] = []
    for at in range(len(parsed.launches)):
        if at < len(current.launches) and current.launches[at].launcher is not Launcher.ROUTER:
            current = _carry(current, at, there, rewritten, left)
    effects, notes = _effects(parsed, current, subject, there)
    return Upgraded(parsed, current, target, tuple(rewritten), tuple(dict.fromkeys(left)), effects, notes)


def _carry(parsed: ParsedFile, at: int, subject: Subject, rewritten: list[Rewritten], left: list[str]) -> ParsedFile:
    """One launch, rewritten hit by hit: after each the text is read again."""
    current = parsed
    refused: set[str] = set()
    while True:
        context = build_contexts(current.launches, subject)[at]
        step = next(((hit, hit.message) for hit in _hits(context) if hit.message not in refused), None)
        if step is None:
            break
        hit, message = step
        refused.add(message)
        try:
            edited = edit_file(current, at, hit.edits, context)
        except InputError as fault:
            left.append(f"{message}: {fault.problems[0].message}")
            continue
        if edited.text == current.text:
            continue
        line = hit.place.line if hit.place is not None else current.launches[at].span.line
        rewritten.append(Rewritten(line, message, hit.edits, hit.safe))
        current = edited
    unknown = rule_of("FLG001")
    assert unknown is not None
    context = build_contexts(current.launches, subject)[at]
    left += [hit.message for hit in unknown.check(context) if not hit.informs]
    return current


def _hits(context: RuleContext) -> Iterator[Hit]:
    for code in _REWRITERS:
        rule = rule_of(code)
        assert rule is not None
        if context.within(rule.versions) is True:
            yield from (hit for hit in rule.check(context) if hit.edits)


def _effects(
    before: ParsedFile, after: ParsedFile, here: Subject, there: Subject
) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    if here.hardware is None:
        return (), ("what changes in effect needs --hw",)
    old, new = build_contexts(before.launches, here), build_contexts(after.launches, there)
    notes: list[str] = []
    effects: list[Effect] = []
    for launch, one, other in zip(before.launches, old, new, strict=False):
        if one.resolution is None or other.resolution is None:
            continue
        if not one.version.stated:
            notes.append("the version before is not stated: the newest known one stands for it (--engine-version)")
        for resolution in (one.resolution, other.resolution):
            if resolution.error is not None:
                notes.append(f"{resolution.engine_version} refuses: {resolution.error.message}")
        shared = one.resolution.effective.keys() & other.resolution.effective.keys()
        for field in sorted(shared - one.launch.unknown):
            first, second = one.resolution.effective[field], other.resolution.effective[field]
            if first != second and not isinstance(first, dict):
                effects.append(Effect(launch.span.line, field, first, second))
    return tuple(effects), tuple(dict.fromkeys(notes))


def effect_lines(effects: Sequence[Effect]) -> list[str]:
    """Effects as text, one a line."""
    return [f"line {one.line}: {one.field} {one.before!r} -> {one.after!r}" for one in effects]
