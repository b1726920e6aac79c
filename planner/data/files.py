"""Packaged data files: the one place that opens them, from a source tree or an installed wheel alike."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

__all__ = ["list_names", "open_npz", "read_bytes", "read_text"]


def read_text(name: str) -> str:
    """Text of ``planner/data/<name>`` (UTF-8). ``name`` uses ``/``.

    Raises:
        FileNotFoundError: the package has no such file (a packaging fault, not a user's).
    """
    return resources.files("planner.data").joinpath(name).read_text(encoding="utf-8")


def read_bytes(name: str) -> bytes:
    """Content of ``planner/data/<name>``."""
    return resources.files("planner.data").joinpath(name).read_bytes()


def open_npz(name: str) -> NpzFile:
    """Arrays of ``planner/data/<name>``, read into memory; pickles are refused."""
    import io

    import numpy as np

    loaded = np.load(io.BytesIO(read_bytes(name)), allow_pickle=False)
    if not hasattr(loaded, "files"):
        raise ValueError(f"{name} holds a single array, not an archive")
    return loaded  # type: ignore[no-any-return]


def list_names(folder: str, suffix: str = "", package: str = "planner.data") -> list[str]:
    """Sorted file names in a packaged folder (not recursive) that end with ``suffix``."""
    root = resources.files(package)
    if folder:
        root = root.joinpath(folder)
    return sorted(entry.name for entry in root.iterdir() if entry.is_file() and entry.name.endswith(suffix))
