"""``docs/dependencies.md`` names what ``pyproject.toml`` declares, and is honest about what is imported."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement

from tests.docs.docs_pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
MODULES = {"ruamel.yaml": "ruamel"}


def _rows() -> dict[str, str]:
    """Package -> its row, from the first table."""
    table = PAGE.split("| extra |")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| package")]
    return {name.strip(): row for row in rows for name in row.split("|")[1].split(",")}


def _is_imported(package: str) -> bool:
    module = MODULES.get(package, package.replace("-", "_"))
    pattern = re.compile(rf"^\s*(?:import|from) {re.escape(module)}\b", re.MULTILINE)
    return any(pattern.search(path.read_text(encoding="utf-8")) for path in (ROOT / "planner").rglob("*.py"))


def test_every_dependency_has_a_row_and_every_row_a_dependency():
    declared = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert _rows().keys() == declared


def test_rows_say_when_nothing_imports_the_package():
    for package, row in _rows().items():
        assert ("not imported yet" in row) == (not _is_imported(package)), package


def test_extras_are_those_of_the_project():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)) == PROJECT["optional-dependencies"].keys()
