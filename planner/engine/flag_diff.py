"""What changed between two flag tables."""

from __future__ import annotations

from typing import Any

from planner.domain import Value
from planner.engine.flag_table import FlagKind, FlagSpec, FlagTable
from planner.engine.spelling import field_of_dest

__all__ = ["FlagChange", "FlagDiff", "diff_tables"]


class FlagChange(Value):
    """One flag whose default, choices or type changed."""

    name: str
    what: str
    """``default``, ``choices``, ``type`` or ``nargs``."""
    before: Any
    after: Any


class FlagDiff(Value):
    """Changes from one version to another, flags by their canonical spelling."""

    old: str
    new: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    """Spellings that the newer parser does not know at all."""
    renamed: tuple[tuple[str, str], ...]
    """Old spelling that is gone or deprecated, and the spelling that took its place."""
    deprecated: tuple[tuple[str, str], ...]
    """Spelling that became deprecated, and its replacement (may be empty)."""
    changed: tuple[FlagChange, ...]


def diff_tables(old: FlagTable, new: FlagTable) -> FlagDiff:
    """Differences from ``old`` to ``new``."""
    added = [flag.names[0] for flag in new.flags if not set(flag.names) & old.by_name.keys() and _alive(flag)]
    removed = [name for flag in old.flags for name in flag.names if name not in new.by_name and _alive(flag)]
    renamed = []
    for flag in old.flags:
        twin = new.by_dest.get(field_of_dest(flag.dest, old))
        if twin is None or flag.deprecated is not None or twin.names[0] in flag.names:
            continue
        if flag.names[0] not in new.by_name or new.by_name[flag.names[0]].deprecated is not None:
            renamed.append((flag.names[0], twin.names[0]))
    deprecated = [
        (name, flag.deprecated)
        for flag in new.flags
        for name in flag.names
        if flag.deprecated is not None and name in old.by_name and old.by_name[name].deprecated is None
    ]
    changed = [
        change for flag in new.flags if _alive(flag) for change in _changes(old.by_name.get(flag.names[0]), flag)
    ]
    return FlagDiff(
        old=old.version,
        new=new.version,
        added=tuple(added),
        removed=tuple(removed),
        renamed=tuple(renamed),
        deprecated=tuple(deprecated),
        changed=tuple(changed),
    )


def _alive(flag: FlagSpec) -> bool:
    return flag.deprecated is None and flag.kind is not FlagKind.REFUSED


def _changes(before: FlagSpec | None, after: FlagSpec) -> list[FlagChange]:
    if before is None:
        return []
    return [
        FlagChange(name=after.names[0], what=what, before=getattr(before, what), after=getattr(after, what))
        for what in ("default", "choices", "type", "nargs")
        if getattr(before, what) != getattr(after, what)
    ]
