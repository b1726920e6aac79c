"""Flag table of one engine version: what its parser accepts, as facts.

``prefix_matches`` follows argparse, whose abbreviations are on in SGLang: a unique prefix is accepted, two are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from planner._record import record

__all__ = ["FlagKind", "FlagSpec", "FlagTable", "FlagType"]


class FlagKind(StrEnum):
    """What happens when the flag is met."""

    VALUE = "value"
    """One value (with nargs ``?`` none or one)."""
    LIST = "list"
    """Several values up to the next flag."""
    TRUE = "true"
    FALSE = "false"
    BOOL_OPTIONAL = "bool_optional"
    """``--x`` and ``--no-x``."""
    CONST = "const"
    """No value on the command line; a fixed one is stored."""
    CONST_OF_VALUE = "const_of_value"
    """One value is taken; a fixed one is stored."""
    IGNORED = "ignored"
    """Accepted with a warning; does nothing."""
    REFUSED = "refused"
    """Accepted by name only to stop with a message."""


class FlagType(StrEnum):
    """How a value is read."""

    STR = "str"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    HUMAN_INT = "human_int"
    """``16k`` and ``2Ki`` too."""
    JSON = "json"
    NULLABLE_STR = "nullable_str"


_KINDS = {one.value: one for one in FlagKind}
_TYPES = {one.value: one for one in FlagType}


@record(kw_only=True)
class FlagSpec:
    """One argument of the parser. A table has some five hundred: no validator stands between them and a command."""

    names: tuple[str, ...]
    """Spellings, the canonical one first."""
    dest: str
    kind: FlagKind
    type: FlagType
    nargs: str | None = None
    choices: tuple[str | int, ...] | None = None
    default: Any = None
    const: Any = None
    required: bool = False
    deprecated: str | None = None
    """Not None for a deprecated flag: its replacement (empty when the engine names none)."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_row`.

        Raises:
            KeyError, TypeError: a key is missing or unknown, or an unknown kind or type.
        """
        if strange := row.keys() - cls.__dataclass_fields__.keys():
            raise TypeError(f"unknown keys {sorted(strange)}")
        # A table has some five hundred of them, so the values are put in place without the checks of a call.
        flag = cls.__new__(cls)
        flag.__dict__.update(_DEFAULTS)
        flag.__dict__.update(row)
        flag.__dict__.update(
            names=tuple(row["names"]), dest=row["dest"], kind=_KINDS[row["kind"]], type=_TYPES[row["type"]]
        )
        if row.get("choices") is not None:
            flag.__dict__["choices"] = tuple(row["choices"])
        return flag

    def to_row(self) -> dict[str, Any]:
        """JSON form without the values that are at their default."""
        row: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                row[field.name] = list(value) if isinstance(value, tuple) else value
        return row | {"kind": self.kind.value, "type": self.type.value}

    def replace(self, **changes: Any) -> Self:
        """A copy with ``changes``."""
        return replace(self, **changes)


_DEFAULTS = {one.name: one.default for one in fields(FlagSpec) if one.default is not MISSING}


@record(kw_only=True)
class FlagTable:
    """All arguments of one version."""

    version: str
    released: str
    """Day of the files in the wheel, YYYY-MM-DD."""
    flags: tuple[FlagSpec, ...]
    fields: tuple[tuple[str, Any], ...] = ()
    """Defaults of ``ServerArgs`` by field, flags or not."""

    @cached_property
    def by_name(self) -> dict[str, FlagSpec]:
        """Flag by every spelling."""
        return {name: flag for flag in self.flags for name in flag.names}

    @cached_property
    def by_dest(self) -> dict[str, FlagSpec]:
        """The flag to write for a destination: the first that is not deprecated, else the first."""
        table: dict[str, FlagSpec] = {}
        for flag in self.flags:
            held = table.get(flag.dest)
            if held is None or (held.deprecated is not None and flag.deprecated is None):
                table[flag.dest] = flag
        return table

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Value of every ``ServerArgs`` field when nothing is given on the command line: the parser's default where it
        has one, else the field's."""
        own = dict(self.fields)
        given = {
            flag.dest: flag.default
            for flag in self.flags
            if flag.deprecated is None and flag.default is not None and flag.dest in own
        }
        return own | given

    def replace(self, **changes: Any) -> Self:
        """A copy with ``changes``."""
        return replace(self, **changes)

    def prefix_matches(self, name: str) -> list[str]:
        """Every spelling that starts with ``name``, in the parser's order."""
        return [spelling for flag in self.flags for spelling in flag.names if spelling.startswith(name)]
