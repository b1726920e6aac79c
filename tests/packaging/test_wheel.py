"""A wheel built from the tree plans on its own: profiles, limits and tables are in it, and no folder is needed."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("planner", "hardware_profiles", "pyproject.toml", "README.md", "LICENSE", "NOTICE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that no build folder is left in the tree."""
    source = tmp_path_factory.mktemp("source")
    for name in KEPT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check"]
    if _has_setuptools():
        command.append("--no-build-isolation")
    subprocess.run([*command, "-w", str(out), str(source)], check=True, capture_output=True, timeout=120)
    (built,) = out.glob("plan_config-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; its dependencies come from the environment that runs the tests."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    unpack = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check"]
    subprocess.run(
        [*unpack, "--target", str(packages), str(wheel)], check=True, capture_output=True, timeout=120, cwd="/"
    )
    # .pth files of the parent are not followed: an editable install there must not stand in for the wheel.
    (packages / "parent.pth").write_text("\n".join(site.getsitepackages()) + "\n", encoding="utf-8")
    return home


def _has_setuptools() -> bool:
    """Whether the build backend is here already, so that nothing is fetched."""
    try:
        return int(version("setuptools").split(".")[0]) >= 77
    except PackageNotFoundError:
        return False


def _run(home: Path, *arguments: str, code: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(home / "bin" / "python"), *arguments],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_wheel_holds_data_licences_and_nothing_of_the_tests(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    for kept in ("hardware_profiles/b300.toml", "planner/data/limits/sglang.toml", "planner/py.typed"):
        assert kept in names
    assert any(name.startswith("planner/data/kernels/") and name.endswith(".npz") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs", "examples"))]


def test_every_packaged_file_of_the_tree_is_in_the_wheel(wheel: Path):
    """Data files are easy to lose: a new folder needs no entry anywhere, and this would tell."""
    names = set(zipfile.ZipFile(wheel).namelist())
    tree = [*(ROOT / "planner" / "data").rglob("*"), *(ROOT / "hardware_profiles").rglob("*")]
    files = {path.relative_to(ROOT).as_posix() for path in tree if path.is_file() and "__pycache__" not in path.parts}
    assert files - names == set()


def test_an_installed_wheel_plans_from_the_root_folder(installed: Path):
    where = _run(installed, "-c", "import planner; print(planner.__file__)")
    assert where.startswith(str(installed))
    text = _run(installed, "-m", "planner.cli", "--hw", "b300", "--target-c", "64")
    assert text.startswith("PLAN  b300")
    assert "python -m sglang.launch_server" in text


def test_the_console_script_is_declared(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert "plan-config = planner.cli:main" in archive.read(entry_points).decode()


def test_the_wheel_lists_every_packaged_profile(installed: Path):
    listed = _run(installed, "-m", "planner.cli", "hw", "list").split("\n")
    ids = {path.stem for path in (ROOT / "hardware_profiles").glob("*.toml")}
    assert {line.split()[0] for line in listed if line} == ids
