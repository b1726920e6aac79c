"""Files are whole or absent: written beside their place, synced, renamed."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: Path, text: str, *, mode: int | None = 0o600) -> None:
    """Replaces ``path`` by ``text`` in one step; on failure the old content stands.

    A link is followed, so that what it points to is replaced. What is no regular file (a device, a pipe) is written to
    and never replaced.

    Args:
        mode: permissions of the file; None keeps those of the file that stands there.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    path = Path(os.path.realpath(path))
    with contextlib.suppress(FileNotFoundError):
        found = path.stat().st_mode
        if not stat.S_ISREG(found):
            path.write_text(text, encoding="utf-8", newline="")
            return
        mode = stat.S_IMODE(found) if mode is None else mode
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644 if mode is None else mode)
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
