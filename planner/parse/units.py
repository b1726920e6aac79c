"""systemd units and their drop-ins, when both are among the files that are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from planner.parse.model import EnvSetting, Form, ParsedFile, ParsedLaunch, Skipped
from planner.parse.reading import parse_text

__all__ = ["join_units"]

_DROP_IN = re.compile(r"(.*\.service)\.d/[^/]+\.conf$")
_START = re.compile(r"^[ \t]*ExecStart[ \t]*=", re.MULTILINE)


def join_units(files: Sequence[ParsedFile], skipped: list[Skipped]) -> list[ParsedFile]:
    """Applies drop-ins: the last ``ExecStart`` counts, and variables of the unit and of all drop-ins reach it.

    A launch that a drop-in replaces is listed as skipped. A drop-in without ``ExecStart`` is no fault.
    """
    groups: dict[str, list[int]] = {}
    for index, file in enumerate(files):
        if file.form is Form.SYSTEMD:
            match = _DROP_IN.match(file.name.replace("\\", "/"))
            groups.setdefault(match.group(1) if match else file.name.replace("\\", "/"), []).append(index)
    joined = list(files)
    for unit, members in groups.items():
        members.sort(key=lambda index: (files[index].name != unit, files[index].name))
        if len(members) > 1:
            for index, file in zip(members, _joined([files[index] for index in members], skipped), strict=True):
                joined[index] = file
    return joined


def _joined(files: Sequence[ParsedFile], skipped: list[Skipped]) -> list[ParsedFile]:
    starting = [index for index, file in enumerate(files) if _START.search(file.text)]
    last = starting[-1] if starting else 0
    env: dict[str, tuple[int, EnvSetting]] = {}
    for index, file in enumerate(files):
        for setting in _settings(file):
            env[setting.name] = (index, setting)
    result = []
    for index, file in enumerate(files):
        problems = tuple(item for item in file.problems if not item.message.startswith("no SGLang launch"))
        if index == last:
            launches = tuple(_with_env(launch, index, files, env) for launch in file.launches)
            result.append(replace(file, launches=launches, problems=problems if launches else file.problems))
            continue
        if file.launches:
            skipped.append(Skipped(file.name, f"its ExecStart is replaced by {files[last].name}"))
        result.append(replace(file, launches=(), problems=problems))
    return result


def _settings(file: ParsedFile) -> Sequence[EnvSetting]:
    if file.launches:
        return file.launches[0].env
    # A drop-in that only sets variables has no launch to carry them.
    probe = parse_text(
        f"{file.text}\n[Service]\nExecStart=python3 -m sglang.launch_server\n", name=file.name, form="systemd"
    )
    return probe.launches[0].env if probe.launches else ()


def _with_env(
    launch: ParsedLaunch, index: int, files: Sequence[ParsedFile], env: dict[str, tuple[int, EnvSetting]]
) -> ParsedLaunch:
    settings = tuple(setting if at == index else replace(setting, file=files[at].name) for at, setting in env.values())
    return replace(launch, env=settings)
