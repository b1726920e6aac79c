"""A room imports only from rooms above it; a few modules are imported in one place only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import planner

ROOT = Path(planner.__file__).parent

ROOMS = (
    ("_lazy", "_record"),
    ("errors", "units", "version"),
    ("domain",),
    ("data",),
    ("estimate",),
    ("engine",),
    ("rules", "limits"),
    ("search",),
    ("parse", "diagnose"),
    ("review",),
    ("api",),
    ("render",),
    ("launch",),
    ("learn",),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}

ONLY_IN = {
    "scipy": ("estimate",),
    "ortools": ("search",),
    "subprocess": ("launch",),
    "matplotlib": ("render",),
    "rich": ("cli", "launch", "render"),
    "httpx": ("launch", "cli"),
    "sqlite3": ("launch",),
}
NEVER = ("torch", "sglang")
RUN_BY_THE_SERVERS_PYTHON = ("launch/probe.py",)
"""Scripts that the launcher hands to the interpreter of the server: they may import the engine."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "planner" if first == "__init__" else first


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield node.lineno, node.module or ""


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_rooms_above(path: Path) -> None:
    room = room_of(path)
    faults = []
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] in NEVER and path.relative_to(ROOT).as_posix() not in RUN_BY_THE_SERVERS_PYTHON:
            faults.append(f"{path.name}:{line}: {name} is imported nowhere: planning runs without it")
        if parts[0] in ONLY_IN and room not in ONLY_IN[parts[0]]:
            faults.append(f"{path.name}:{line}: {parts[0]} belongs to {', '.join(ONLY_IN[parts[0]])}")
        if parts[0] != "planner" or len(parts) < 2 or room == "planner":
            continue
        target = parts[1]
        assert target in LEVEL, f"{path.name}:{line}: room {target} has no place in the order"
        if target != room and LEVEL[target] >= LEVEL[room]:
            faults.append(f"{path.name}:{line}: {room} imports {name}, which is not above it")
    assert not faults, "\n".join(faults)


def test_every_room_is_in_the_order() -> None:
    found = {room_of(path) for path in modules()} - {"planner"}
    assert found <= LEVEL.keys()


def test_packaged_files_are_opened_in_data_only() -> None:
    """Only the data room asks importlib.resources for a file."""
    users = [
        path.relative_to(ROOT).as_posix()
        for path in modules()
        if any(name.startswith("importlib.resources") or name == "importlib" for _, name in imports(path))
        and "resources" in path.read_text(encoding="utf-8")
    ]
    assert all(user.startswith("data/") for user in users), users
