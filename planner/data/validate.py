"""From parsed TOML or JSON to a domain value, with every fault named by file, line and field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from planner.data.toml_source import KeyPath, TomlSource
from planner.domain import Value
from planner.domain.faults import faults_of
from planner.errors import InputError

__all__ = ["build"]

_V = TypeVar("_V", bound=Value)


def build(kind: type[_V], data: Mapping[str, Any], *, source: TomlSource, at: KeyPath = ()) -> _V:
    """Validate ``data`` (found at path ``at`` of ``source``) as ``kind``.

    Raises:
        InputError: with one Problem for each fault.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise InputError(
            replace(problem, file=source.name, line=source.line_of((*at, *location)) or 1)
            for location, problem in faults_of(error, kind)
        ) from None
