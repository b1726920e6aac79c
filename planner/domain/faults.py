"""Pydantic's validation errors as Problems: short words, the value, the nearest valid key."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from planner.errors import Problem, nearest_hint

__all__ = ["Location", "faults_of"]

Location = tuple[str | int, ...]


def faults_of(error: ValidationError, kind: type[BaseModel]) -> list[tuple[Location, Problem]]:
    """``(location, problem)`` for each error of validating a ``kind``; an unknown key comes with the nearest key."""
    found = []
    for fault in error.errors(include_url=False):
        location: Location = fault["loc"]
        value = fault.get("input")
        message = fault["msg"].removeprefix("Value error, ")
        hint = None
        if fault["type"] == "extra_forbidden":
            message = "unknown key"
            hint = nearest_hint(str(location[-1]), sorted(_fields_at(kind, location[:-1])))
        elif fault["type"] == "missing":
            message, value = "missing", None
            hint = "every key without a default must be given"
        elif isinstance(value, (str, int, float, bool)):
            message = f"{message} (got {value!r})"
        name = ".".join(str(part) for part in location) or None
        found.append((location, Problem(message[0].lower() + message[1:], field=name, value=value, hint=hint)))
    return found


def _fields_at(kind: type[BaseModel], path: Location) -> set[str]:
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
