"""The public door: exact, sorted, and every module's ``__all__`` names what it defines."""

from __future__ import annotations

import importlib
import pkgutil
import types

import pytest

import planner


def all_modules() -> list[str]:
    return sorted(
        info.name
        for info in pkgutil.walk_packages(planner.__path__, prefix="planner.")
        if not info.name.endswith("__main__")
    )


def test_all_is_sorted_and_resolves() -> None:
    assert planner.__all__ == sorted(planner.__all__)
    for name in planner.__all__:
        assert getattr(planner, name) is not None
    assert dir(planner) == planner.__all__


def test_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        planner.plam  # noqa: B018


@pytest.mark.parametrize("name", all_modules())
def test_module_all_is_exact(name: str) -> None:
    """``__all__`` is there, has no duplicate, and each name exists. Order: as ruff's RUF022 sorts it."""
    module = importlib.import_module(name)
    assert isinstance(module, types.ModuleType)
    assert hasattr(module, "__all__"), f"{name} has no __all__"
    assert len(set(module.__all__)) == len(module.__all__)
    missing = [entry for entry in module.__all__ if not hasattr(module, entry)]
    assert not missing
    assert module.__doc__, f"{name} has no docstring"
