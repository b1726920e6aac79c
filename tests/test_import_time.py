"""What importing must not load: a review in a pull request and ``import planner`` stay light."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("scipy", "ortools", "pandas", "matplotlib", "rich", "tree_sitter", "ruamel", "httpx", "sqlite3", "psutil")


def loaded(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after ``code``."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n"))


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("import planner", ("numpy", "pydantic")),
        ("import planner.cli", ("numpy", "pydantic")),
        ("import planner; planner.plan(hw='b300', target_c=64)", ()),
    ],
)
def test_import_loads_nothing_heavy(code: str, more: tuple[str, ...]) -> None:
    assert not loaded(code) & {*HEAVY, *more}
