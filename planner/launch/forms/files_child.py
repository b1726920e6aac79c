"""Reads, replaces or removes one file; runs as ``python3 -c SOURCE`` on the host that has the file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile

__all__ = ["main"]


def _write(path: str, text: str) -> None:
    folder = os.path.dirname(path) or "."
    handle, temporary = tempfile.mkstemp(dir=folder, prefix="." + os.path.basename(path))
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main() -> None:
    """Order on standard input, answer on standard output, both JSON."""
    order = json.loads(sys.stdin.read())
    answer: dict[str, object] = {}
    try:
        if order["op"] == "read":
            with contextlib.suppress(FileNotFoundError), open(order["path"], encoding="utf-8") as stream:
                answer["text"] = stream.read()
        elif order["op"] == "write":
            _write(order["path"], order["text"])
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(order["path"])
    except OSError as error:
        answer["error"] = error.strerror or str(error)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
