"""Files are whole or absent: written beside their place, synced, renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["keep_old", "write_atomically"]


def keep_old(path: Path) -> None:
    """Moves a file of an earlier run aside (``server.log`` -> ``server.log.1``): one log tells of one run."""
    if not path.exists() or path.is_symlink():
        return
    number = 1
    while (aside := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    path.rename(aside)


def write_atomically(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replaces ``path`` by ``text`` in one step; on failure the old content stands.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
