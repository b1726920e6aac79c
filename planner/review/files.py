"""Files of the user beside launch files: settings, baselines, and where repaired text goes."""

from __future__ import annotations

from pathlib import Path

from planner.data.writing import write_atomically
from planner.errors import InputError, Problem
from planner.review.suppress import Settings, read_baseline, read_settings

__all__ = ["load_baseline", "load_settings", "write_text"]

SETTINGS_FILE = "pyproject.toml"


def load_settings(path: str | None, *, folder: str = ".") -> Settings:
    """``[tool.plan-config]`` of ``path``; without a path of the pyproject.toml in ``folder``, if there is one.

    Raises:
        InputError: the file named cannot be read, or the table is not right.
    """
    if path is None:
        default = Path(folder) / SETTINGS_FILE
        if not default.is_file():
            return Settings()
        path = str(default)
    return read_settings(_read(path), name=path)


def load_baseline(path: str | None) -> frozenset[str]:
    """Fingerprints of a baseline file; none without a path.

    Raises:
        InputError: the file cannot be read or is no baseline.
    """
    return read_baseline(_read(path), name=path) if path is not None else frozenset()


def write_text(path: str | Path, text: str) -> None:
    """Replaces a file in one step and keeps its mode; what stood there stays whole if writing fails.

    Raises:
        InputError: the place cannot be written.
    """
    try:
        write_atomically(Path(path), text, mode=None)
    except OSError as fault:
        raise InputError([Problem(f"cannot be written: {fault.strerror or fault}", file=str(path))]) from None


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError([Problem("not a text file (UTF-8)", file=path)]) from None
    except OSError as fault:
        raise InputError([Problem(f"cannot be read: {fault.strerror or fault}", file=path)]) from None
