"""From parsed TOML or JSON to a domain value, with every fault named by file, line and field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from planner.data.toml_source import KeyPath, TomlSource
from planner.domain import Value
from planner.errors import InputError, Problem, nearest_hint

__all__ = ["build", "problems_of"]

_V = TypeVar("_V", bound=Value)


def build(kind: type[_V], data: Mapping[str, Any], *, source: TomlSource, at: KeyPath = ()) -> _V:
    """Validate ``data`` (found at path ``at`` of ``source``) as ``kind``.

    Raises:
        InputError: with one Problem for each fault.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise InputError(problems_of(error, kind, source=source, at=at)) from None


def problems_of(
    error: ValidationError, kind: type[BaseModel], *, source: TomlSource, at: KeyPath = ()
) -> list[Problem]:
    """One Problem for each pydantic error, unknown keys with the nearest valid key."""
    problems = []
    for fault in error.errors(include_url=False):
        path = (*at, *fault["loc"])
        hint = None
        message = fault["msg"].removeprefix("Value error, ")
        value = fault.get("input")
        if fault["type"] == "extra_forbidden":
            message = "unknown key"
            hint = nearest_hint(str(fault["loc"][-1]), sorted(_fields_at(kind, fault["loc"][:-1])))
        elif fault["type"] == "missing":
            message = "missing"
            hint = "every key without a default must be given"
            value = None
        elif isinstance(value, (str, int, float, bool)):
            message = f"{message} (got {value!r})"
        problems.append(
            Problem(
                message[0].lower() + message[1:],
                file=source.name,
                line=source.line_of(path) or 1,
                field=".".join(str(part) for part in fault["loc"]) or None,
                value=value,
                hint=hint,
            )
        )
    return problems


def _fields_at(kind: type[BaseModel], path: tuple[str | int, ...]) -> set[str]:
    """Field names of the model that stands at ``path`` inside ``kind``."""
    model = kind
    for part in path:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        inner = _model_in(field.annotation) if field is not None else None
        if inner is None:
            return set()
        model = inner
    return set(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        if (found := _model_in(argument)) is not None:
            return found
    return None
