"""Proposals as a TOML file and as a diff for review. Nothing is applied here."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from planner.data.toml_source import parse_toml
from planner.data.validate import build
from planner.domain import Limit
from planner.learn.revise import Revision

__all__ = ["amended_text", "diff_of"]

_HEAD = "# Limits proposed from runs. Read the evidence before this file is used: plan-config ... --limits FILE\n"


def amended_text(base: str, new: Sequence[Limit], revisions: Sequence[Revision]) -> str:
    """A limit file with the proposals in it; comments and order of ``base`` stay.

    Args:
        base: text of the file that is amended; empty for a new one.
        new: limits to add; one whose id is there already gets a number behind it.
        revisions: limits to change; one that the file does not hold is added and replaces the built-in one.
    """
    import tomlkit
    from tomlkit.items import AoT

    document = tomlkit.parse(base) if base else tomlkit.parse(_HEAD + "schema_version = 1\n\n")
    entries = document.setdefault("limit", tomlkit.aot())
    assert isinstance(entries, AoT)
    for revision in revisions:
        held = next((entry for entry in entries if entry.get("id") == revision.before.id), None)
        if held is None:
            entries.append(_table(revision.after))
        else:
            _update(held, revision)
    for limit in new:
        taken = {str(entry.get("id")) for entry in entries}
        id_, number = limit.id, 2
        while id_ in taken:
            id_, number = f"{limit.id}-{number}", number + 1
        entries.append(_table(limit.replace(id=id_)))
    text = str(tomlkit.dumps(document))
    source = parse_toml(text, name="the proposal")
    for index, entry in enumerate(source.data["limit"]):
        build(Limit, entry, source=source, at=("limit", index))
    return text


def diff_of(before: str, after: str, *, name: str) -> str:
    """Unified diff, for ``patch`` and for eyes; empty when nothing changes."""
    old = f"a/{name}" if before else "/dev/null"
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), fromfile=old, tofile=f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _number(value: float | None) -> int | float | None:
    return int(value) if value is not None and value == int(value) else value


def _table(limit: Limit) -> Any:
    import tomlkit

    data = limit.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    evidence, when = data.pop("evidence"), data.pop("when", {})
    table = tomlkit.table()
    for name, value in data.items():
        table.add(name, _number(value) if isinstance(value, float) else value)
    if when:
        scope = tomlkit.inline_table()
        scope.update(when)
        table.add("when", scope)
    rows = tomlkit.aot()
    for entry in evidence:
        rows.append(_evidence(entry))
    table.add("evidence", rows)
    return table


def _evidence(entry: dict[str, Any]) -> Any:
    import tomlkit

    row = tomlkit.table()
    for name, value in entry.items():
        row.add(name, _number(value) if isinstance(value, float) else value)
    return row


def _update(held: Any, revision: Revision) -> None:
    """Changes what differs and adds the new evidence; everything else stands as it is written."""
    before, after = revision.before, revision.after
    for name in ("known_good", "known_bad", "fixed_in"):
        if getattr(before, name) != getattr(after, name):
            value = getattr(after, name)
            held[name] = _number(value) if isinstance(value, float) else value
    if before.status is not after.status:
        held["status"] = after.status.value
    for entry in after.evidence[len(before.evidence) :]:
        held["evidence"].append(_evidence(entry.model_dump(mode="json", exclude_none=True)))
