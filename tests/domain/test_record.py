"""Records behave as frozen dataclasses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, field, fields, replace
from functools import cached_property

import pytest

from planner._record import record


@record()
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)

    @cached_property
    def twice(self) -> int:
        return 2 * self.total


@record(eq=False, kw_only=True)
class Named:
    name: str = ""
    size: int


def test_fields_defaults_and_the_values_made_after() -> None:
    point = Point(1)
    assert (point.x, point.y, point.tags, point.total, point.twice) == (1, 2, [], 3, 6)
    assert point.tags is not Point(1).tags
    assert [one.name for one in fields(point)] == ["x", "y", "tags", "total"]
    assert repr(point) == "Point(x=1, y=2, tags=[], total=3)"


def test_replace_makes_the_rest_anew() -> None:
    assert replace(Point(1, 5), x=4).total == 9


def test_equal_by_value_only_where_asked() -> None:
    assert Point(1) == Point(1, 2)
    assert Point(1) != Point(2)
    assert Point(1) != 1
    assert Named(size=1) != Named(size=1)


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del Point(1).x


@pytest.mark.parametrize(
    ("args", "given"),
    [((), {}), ((1,), {"x": 1}), ((1, 2, [], 4), {}), ((1,), {"z": 1}), ((1,), {"total": 1})],
    ids=["missing", "twice", "too many", "unknown", "not given from outside"],
)
def test_wrong_arguments_are_refused(args: tuple[object, ...], given: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Point(*args, **given)  # type: ignore[arg-type]


def test_keywords_only() -> None:
    with pytest.raises(TypeError):
        Named("a", 1)  # type: ignore[misc]
