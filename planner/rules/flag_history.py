"""Flags that were renamed or removed, flags of vLLM, and what takes their place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from planner._record import record
from planner.data.files import read_text
from planner.domain import FixEdit
from planner.engine.flags import SGLANG_TWIN, VLLM_FLAGS, flag_table, flag_versions
from planner.engine.spelling import dest_in_version, field_of_dest
from planner.rules.base import set_field, unset

if TYPE_CHECKING:
    from planner.rules.context import RuleContext

__all__ = ["Removed", "explained", "is_vllm", "removed_flag", "twin_of"]

_VLLM_ONLY = VLLM_FLAGS | {"--ngram-prompt-lookup-max", "--ngram-prompt-lookup-min", "--tensor-parallel"}


@record()
class Removed:
    """What became of a flag."""

    rename: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    note: str | None = None
    gone_by: str | None = None
    """A release that no longer has it, for flags older than every table."""

    @property
    def advice(self) -> str:
        """Text for the message, with its joint."""
        if self.rename:
            return f"; it is {self.rename} now"
        if self.settings:
            return "; write " + " ".join(f"--{name.replace('_', '-')} {value}" for name, value in self.settings)
        return f"; {self.note}" if self.note else ""

    @property
    def safe(self) -> bool:
        """Whether the replacement means the same."""
        return self.rename is not None or bool(self.settings)

    def edits(self, flag: str, value: str | None) -> tuple[FixEdit, ...]:
        """Edits that write the replacement."""
        if self.rename:
            return (set_field(flag, self.rename),)
        return (unset(flag), *(set_field(name, setting) for name, setting in self.settings))


@cache
def _old() -> Mapping[str, Removed]:
    rows = tomllib.loads(read_text("rules/flags.toml"))["removed"]
    return {
        row["flag"]: Removed(row.get("rename"), tuple(row.get("set", {}).items()), row.get("advice"), row["gone_by"])
        for row in rows
    }


@cache
def removed_flag(flag: str, tables: tuple[str, ...]) -> Removed | None:
    """What became of ``flag`` for the tables in question; None when no version ever had it."""
    name = flag.split("=", 1)[0]
    for version in reversed(flag_versions()):
        table = flag_table(version)
        spec = table.by_name.get(name)
        if spec is None:
            continue
        field = field_of_dest(spec.dest, table)
        for current in reversed(tables):
            here = flag_table(current)
            dest = dest_in_version(field, here)
            if dest is not None and (new := here.by_dest[dest].names[0]) != name:
                return Removed(rename=new)
        return _old().get(name) or Removed(note=f"SGLang {version} has it")
    return _old().get(name)


def is_vllm(flag: str) -> bool:
    """Whether the flag is one of vLLM's server."""
    return flag.split("=", 1)[0] in _VLLM_ONLY


def twin_of(flag: str) -> str | None:
    """The flag of SGLang that comes closest to one of vLLM's."""
    return SGLANG_TWIN.get(flag.split("=", 1)[0])


def explained(flag: str, ctx: RuleContext) -> bool:
    """Whether another rule says more about an unknown flag: underscores, vLLM, removed, a typographic dash."""
    if is_vllm(flag) or removed_flag(flag, ctx.tables) is not None:
        return True
    if not flag.startswith("--"):
        return True
    return "_" in flag and ctx.knows_flag(flag.replace("_", "-"))
