"""Frozen records that are cheap to declare.

``dataclass(frozen=True)`` compiles a set of methods for each class when its module is imported, half a millisecond; a
plan touches some sixty classes, a tenth of its whole time. Classes marked :func:`record` share one set of methods.
They are dataclasses otherwise: fields, defaults, ``__post_init__``, ``dataclasses.replace`` and ``fields`` work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

__all__ = ["record"]

_C = TypeVar("_C", bound=type[Any])


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, eq: bool = True, kw_only: bool = False) -> Callable[[_C], _C]:
    """Marks a class as a frozen record.

    Args:
        eq: compare and hash by value; False for records that hold arrays.
        kw_only: fields are given by name alone.
    """

    def mark(cls: _C) -> _C:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        given = [one for one in fields(cls) if one.init]
        methods: dict[str, Any] = {
            "__match_args__": () if kw_only else tuple(one.name for one in given),
            "__record_names__": frozenset(one.name for one in given),
            "__record_defaults__": {one.name: one.default for one in given if one.default is not MISSING},
            "__record_makers__": {
                one.name: one.default_factory for one in fields(cls) if one.default_factory is not MISSING
            },
            "__init__": _init,
            "__repr__": _repr,
            "__setattr__": _refuse,
            "__delattr__": _refuse,
        }
        if eq:
            methods |= {"__eq__": _equal, "__hash__": _hash}
        for name, method in methods.items():
            setattr(cls, name, method)
        return cls

    return mark


def _init(self: Any, /, *args: Any, **given: Any) -> None:
    cls = type(self)
    values = {**cls.__record_defaults__, **given}
    if args:
        names = cls.__match_args__[: len(args)]
        if len(names) < len(args) or not given.keys().isdisjoint(names):
            raise TypeError(f"{cls.__name__} takes these in order, each once: {', '.join(cls.__match_args__)}")
        values.update(zip(names, args, strict=True))
    for name, make in cls.__record_makers__.items():
        if name not in values:
            values[name] = make()
    if not cls.__record_names__ <= values.keys() or not given.keys() <= cls.__record_names__:
        missing = sorted(cls.__record_names__ - values.keys())
        raise TypeError(f"{cls.__name__}: missing {missing}, unknown {sorted(given.keys() - cls.__record_names__)}")
    self.__dict__.update(values)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, one.name) for one in fields(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _equal(self: Any, other: object) -> bool:
    return bool(_values(self) == _values(other)) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")
