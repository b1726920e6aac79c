"""Files and directories. A file that cannot be read is a problem of that file; the others are still read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from planner.errors import Problem
from planner.parse.detect import form_of
from planner.parse.model import Form, ParsedFile, ParsedTree, Skipped
from planner.parse.reading import LARGEST_BYTES, parse_text
from planner.parse.setting import MENTION
from planner.parse.units import join_units

__all__ = ["parse_path", "parse_paths"]

_SKIPPED_FOLDERS = frozenset(
    {"node_modules", "__pycache__", "venv", "site-packages", "build", "dist", "target", "vendor", "third_party"}
)
_BY_CONTENT = frozenset({"", ".txt", ".conf", ".cmd", ".env", ".in", ".tpl", ".tmpl"})
_LAUNCH_WORDS = (b"sglang", b"launch_server", b"sgl")


def parse_path(path: str | Path, *, form: str | None = None) -> ParsedFile:
    """Reads one file.

    Returns:
        The file; what cannot be read is in its ``problems``.

    Raises:
        InputError: there is no such ``form``.
    """
    name = str(path)
    try:
        if os.stat(path).st_size > LARGEST_BYTES:
            return _unread(name, f"larger than {LARGEST_BYTES // 1024**2} MiB; not read")
        data = Path(path).read_bytes()
    except OSError as fault:
        return _unread(name, f"cannot be read: {fault.strerror or fault}")
    text = _text(data)
    return _unread(name, "not a text file (UTF-8)", data) if text is None else parse_text(text, name=name, form=form)


def parse_paths(paths: Sequence[str | Path], *, form: str | None = None) -> ParsedTree:
    """Reads files, and walks directories for files that hold launches; what a walk passes over is listed."""
    files: list[ParsedFile] = []
    skipped: list[Skipped] = []
    for path in paths:
        if os.path.isdir(path):
            found = len(files)
            for item in sorted(_walk(Path(path), skipped)):
                parsed = _from_walk(item, form, skipped)
                if parsed is not None:
                    files.append(parsed)
            if len(files) == found:
                files.append(_unread(str(path), "no SGLang launch in this directory"))
        else:
            files.append(parse_path(path, form=form))
    return ParsedTree(tuple(join_units(files, skipped)), tuple(skipped))


def _walk(root: Path, skipped: list[Skipped]) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        for name in sorted(folders):
            if name.startswith(".") or name in _SKIPPED_FOLDERS:
                skipped.append(Skipped(str(Path(folder, name)), "folder of another tool"))
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
        for name in names:
            yield Path(folder, name)


def _from_walk(path: Path, form: str | None, skipped: list[Skipped]) -> ParsedFile | None:
    name = str(path)

    def skip(reason: str) -> None:
        skipped.append(Skipped(name, reason))

    if form is None and form_of(name, "") is None and path.suffix not in _BY_CONTENT:
        skip("not a kind of launch file")
        return None
    try:
        if not path.is_file():
            skip("not a regular file")
            return None
        if path.stat().st_size > LARGEST_BYTES:
            return _unread(name, f"larger than {LARGEST_BYTES // 1024**2} MiB; not read")
        data = path.read_bytes()
    except OSError as fault:
        return _unread(name, f"cannot be read: {fault.strerror or fault}")
    drop_in = _is_drop_in(path)
    if not drop_in and not any(word in data for word in _LAUNCH_WORDS):
        skip("no mention of SGLang")
        return None
    text = _text(data)
    if text is None:
        skip("not a text file")
        return None
    if not drop_in and MENTION.search(text) is None:
        skip("no mention of SGLang")
        return None
    parsed = parse_text(text, name=name, form=form)
    silent = not parsed.launches and all("no SGLang launch" in problem.message for problem in parsed.problems)
    if (silent and not drop_in) or (parsed.form is Form.PYTHON and not parsed.launches):
        skip("mentions SGLang and starts none")
        return None
    return parsed


def _is_drop_in(path: Path) -> bool:
    """Whether a file changes a unit beside it that starts a server."""
    if path.suffix != ".conf" or not path.parent.name.endswith(".service.d"):
        return False
    try:
        return any(word in path.parent.with_suffix("").read_bytes() for word in _LAUNCH_WORDS)
    except OSError:
        return False


def _text(data: bytes) -> str | None:
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _unread(name: str, reason: str, data: bytes = b"") -> ParsedFile:
    line = 1
    if data:
        try:
            data.decode("utf-8")
            line = data[: data.find(b"\0")].count(b"\n") + 1
        except UnicodeDecodeError as fault:
            line = data[: fault.start].count(b"\n") + 1
    return ParsedFile(name, "", None, problems=(Problem(reason, file=name, line=line),))
