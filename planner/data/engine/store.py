"""Opens what the engine room reads: packaged flag tables and release dates, tables a user added, a wheel's sources."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.data.files import list_names, read_text
from planner.errors import InputError

__all__ = [
    "flag_table_names",
    "read_flag_table",
    "read_release_dates",
    "read_wheel",
    "user_folder",
    "write_flag_table",
]

_FOLDER = "engine/flags"
_NAME = re.compile(r"^sglang-([0-9][0-9A-Za-z.]*(?:\+[0-9A-Za-z.]+)?)-")


def user_folder() -> Path:
    """Where ``plan-config engine add`` keeps tables: ``$PLAN_CONFIG_HOME`` or the user's data folder."""
    home = os.environ.get("PLAN_CONFIG_HOME")
    if home:
        return Path(home) / "engine"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "plan-config" / "engine"


def flag_table_names() -> dict[str, str]:
    """Version -> ``packaged`` or ``added``. A user's table of the same version wins."""
    names = {name.removesuffix(".json"): "packaged" for name in list_names(_FOLDER, ".json")}
    folder = user_folder()
    if folder.is_dir():
        names |= {path.stem: "added" for path in sorted(folder.glob("*.json"))}
    return names


@cache
def read_flag_table(version: str) -> Mapping[str, Any]:
    """JSON of one flag table.

    Raises:
        InputError: there is no table of that version, or a user's table is not JSON.
    """
    path = user_folder() / f"{version}.json"
    if path.is_file():
        try:
            return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
        except json.JSONDecodeError as error:
            raise InputError(f"{path} is not a flag table: {error}", "run plan-config engine add WHEEL again") from None
    try:
        return json.loads(read_text(f"{_FOLDER}/{version}.json"))  # type: ignore[no-any-return]
    except FileNotFoundError:
        raise InputError(f"no flag table for SGLang {version}", f"known: {', '.join(flag_table_names())}") from None


@cache
def read_release_dates() -> Mapping[str, str]:
    """Release -> day it was published (YYYY-MM-DD), oldest first."""
    return json.loads(read_text("engine/releases.json"))["releases"]  # type: ignore[no-any-return]


def read_wheel(path: Path) -> tuple[str, str, dict[str, str]]:
    """Version, day of ``server_args.py`` and the Python sources (path inside the wheel -> text) of a wheel.

    Raises:
        InputError: the file is missing, is not a wheel, or is not SGLang's.
    """
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not a wheel (a zip archive)", "pip download --no-deps sglang==VERSION gives one")
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        main = "sglang/srt/server_args.py"
        if main not in names:
            raise InputError(f"{path} is not an SGLang wheel: it has no {main}")
        sources = {
            name: archive.read(name).decode("utf-8", errors="replace")
            for name in names
            if name.startswith("sglang/") and name.endswith(".py")
        }
        year, month, day = archive.getinfo(main).date_time[:3]
        version = _wheel_version(path, archive)
    return version, f"{year:04d}-{month:02d}-{day:02d}", sources


def _wheel_version(path: Path, archive: zipfile.ZipFile) -> str:
    """Version from the wheel's metadata, else from its name."""
    for name in archive.namelist():
        if re.fullmatch(r"sglang-[^/]+\.dist-info/METADATA", name):
            for line in archive.read(name).decode("utf-8", errors="replace").splitlines():
                if line.startswith("Version:"):
                    return line.removeprefix("Version:").strip()
    found = _NAME.match(path.name)
    if found is None:
        raise InputError(f"{path} names no version", "a wheel is called sglang-VERSION-...whl")
    return found.group(1)


def write_flag_table(version: str, content: Mapping[str, Any], folder: Path | None = None) -> Path:
    """Writes one table, one flag a line, to ``folder`` (default: :func:`user_folder`); returns its path."""
    folder = user_folder() if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    head = {key: value for key, value in content.items() if key not in ("flags", "fields")}
    lines = [json.dumps(head)[:-1] + ',\n"fields": ' + json.dumps(content["fields"], separators=(",", ":"))]
    lines.append('"flags": [\n' + ",\n".join(json.dumps(row) for row in content["flags"]) + "\n]}")
    path = folder / f"{version}.json"
    path.write_text(",\n".join(lines) + "\n", encoding="utf-8")
    read_flag_table.cache_clear()
    return path
