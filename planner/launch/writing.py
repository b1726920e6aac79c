"""Files of a run: whole or absent, and an earlier run's moved aside."""

from __future__ import annotations

from pathlib import Path

from planner.data.writing import write_atomically

__all__ = ["keep_old", "write_atomically"]


def keep_old(path: Path) -> None:
    """Moves a file of an earlier run aside (``server.log`` -> ``server.log.1``): one log tells of one run."""
    if not path.is_file() or path.is_symlink():
        return
    number = 1
    while (aside := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    path.rename(aside)
