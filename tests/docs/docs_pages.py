"""The fenced blocks of the documentation, and how each kind is run. Also used by ``benchmarks/refresh_docs.py``."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "OWN_PAGES",
    "PAGES",
    "ROOT",
    "Block",
    "Command",
    "blocks",
    "commands",
    "matches",
    "page_name",
    "run_command",
]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OWN_PAGES = {
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "conventions",
            "dependencies",
            "design",
            "index",
            "limits",
            "memory",
            "plan",
            "plan_table",
            "prediction",
            "profiles",
            "reproduction",
        )
    ),
}
"""Pages whose every ``plan-config`` line is run; of the other pages, those with output or a stated exit code."""

_FENCE = re.compile(r"^( *)```(\S*)\s*$")
_FILE = re.compile(r"^#\s*file:\s*(\S+)\s*$")
_EXIT = re.compile(r"\s+#\s*exit (\d+)\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. ``line`` is that of its first line of content."""

    page: Path
    line: int
    language: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def file(self) -> str | None:
        """Name that the block is saved under before commands run (first line ``# file: NAME``)."""
        found = _FILE.match(self.lines[0]) if self.lines else None
        return found.group(1) if found else None


@dataclass(frozen=True, slots=True)
class Command:
    """A ``$ plan-config ...`` line of a console block, with what the page says it prints and how it exits."""

    block: Block
    line: int
    argv: tuple[str, ...]
    stated_exit: int | None
    output: tuple[str, ...]
    """Lines shown below it; a line ``...`` stands for any lines."""
    offset: int
    """Index in ``block.lines`` of the first line of output."""


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    language: str | None = None
    indent = ""
    content: list[str] = []
    start = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if language is None and fence:
            (indent, language), content, start = fence.groups(), [], number + 1
        elif language is not None and line == f"{indent}```":
            yield Block(page, start, language, tuple(content))
            language = None
        elif language is not None:
            content.append(line.removeprefix(indent))
    assert language is None, f"{page}: a fence is not closed"


def commands(block: Block) -> Iterator[Command]:
    """The ``$ plan-config`` lines of a console block; a line that ends in a backslash goes on in the next."""
    index = 0
    while index < len(block.lines):
        if not block.lines[index].startswith("$ "):
            index += 1
            continue
        first = index
        text = block.lines[index][2:]
        while text.endswith("\\"):
            index += 1
            text = text[:-1] + " " + block.lines[index].strip()
        index += 1
        offset = index
        while index < len(block.lines) and not block.lines[index].startswith("$ "):
            index += 1
        stated = _EXIT.search(text)
        if text.startswith("plan-config ") and "|" not in text:
            yield Command(
                block=block,
                line=block.line + first,
                argv=tuple(shlex.split(_EXIT.sub("", text)))[1:],
                stated_exit=int(stated.group(1)) if stated else None,
                output=block.lines[offset:index],
                offset=offset,
            )


def run_command(argv: tuple[str, ...], folder: Path) -> tuple[int, list[str]]:
    """Exit code and printed lines (both streams) of ``plan-config`` in a folder, without starting a process."""
    from planner.cli import main

    printed = io.StringIO()
    here = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                main(list(argv))
                code = 0
            except SystemExit as exit_:
                code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    finally:
        os.chdir(here)
    return code, [line.rstrip() for line in printed.getvalue().splitlines()]


def matches(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether the printed lines are those shown, where ``...`` stands for any number of lines."""
    parts: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line.rstrip())
    if len(parts) == 1:
        return parts[0] == printed
    head, *middle, tail = parts
    if printed[: len(head)] != head or (tail and printed[-len(tail) :] != tail):
        return False
    at, end = len(head), len(printed) - len(tail)
    for part in middle:
        found = next((i for i in range(at, end - len(part) + 1) if printed[i : i + len(part)] == part), None)
        if found is None:
            return False
        at = found + len(part)
    return at <= end
