"""Brings what the documentation shows up to date: ``python -m benchmarks.refresh_docs [PAGE ...]``.

Generated parts (between ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``) are written anew; below each
``$ plan-config`` line of a console block the output is replaced by what the command prints. An abridged output keeps
its number of lines before the first ``...`` and after the last. The tests in ``tests/docs`` compare; this mends.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.plan_table import plan_tables

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "docs"))

from docs_pages import OWN_PAGES, PAGES, Command, blocks, commands, page_name, run_command  # noqa: E402

__all__ = [
    "accuracy_table",
    "between",
    "command_table",
    "main",
    "page_list",
    "refresh_outputs",
    "reproduction_tables",
    "write_between",
]


def main(names: list[str]) -> None:
    """Refresh the named pages, or all that are generated in part."""
    pages = [page for page in PAGES if page_name(page) in (names or (*OWN_PAGES, "docs/accuracy.md", "docs/fit.md"))]
    for page in pages:
        if page.name == "README.md":
            write_between(page, "commands", command_table())
        elif page.name == "index.md":
            write_between(page, "pages", page_list())
        elif page.name == "reproduction.md":
            write_between(page, "reproduce", reproduction_tables())
        elif page.name == "plan_table.md":
            write_between(page, "plan-table", plan_tables())
        elif page.name == "accuracy.md":
            write_between(page, "accuracy", accuracy_table())
        changed = refresh_outputs(page)
        print(f"{page_name(page)}: {changed} outputs changed")


def accuracy_table() -> str:
    """What ``plan-config accuracy`` measures."""
    from planner.render.accuracy import accuracy_markdown
    from planner.search.accuracy import accuracy

    return accuracy_markdown(accuracy())


def reproduction_tables() -> str:
    """What ``plan-config reproduce`` prints."""
    from planner.render.reproduction import render_reproduction
    from planner.search.reproduction import reproduce

    return render_reproduction(reproduce())


COMMAND_PAGES = {
    "bench": "launch",
    "drafter": "profiles",
    "fix": "rules",
    "check": "rules",
    "hw": "profiles",
    "isolate": "learn",
    "model": "profiles",
    "predict": "prediction",
    "probe": "learn",
    "reproduce": "reproduction",
    "resolve": "engine",
    "sweep": "learn",
    "upgrade": "rules",
    "watch": "launch",
    "workload": "launch",
}
"""Command -> its page, where the names differ."""


def command_table() -> str:
    """The README's table of commands, each with its page."""
    from planner.cli import _COMMANDS

    lines = [
        "| command | does |",
        "|---|---|",
        "| `plan-config --hw ... --target-c ...` | the plan ([plan](docs/plan.md)) |",
    ]
    for name, (_, _, help_) in sorted(_COMMANDS.items()):
        page = COMMAND_PAGES.get(name, name)
        lines.append(f"| `plan-config {name}` | {help_.rstrip('.')} ([{page}](docs/{page}.md)) |")
    return "\n".join(lines) + "\n"


def page_list() -> str:
    """Every page of ``docs`` with its title."""
    lines = []
    for page in PAGES:
        if page.parent.name == "docs" and page.name != "index.md":
            title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
            lines.append(f"- [{page.stem}]({page.name}): {title}\n")
    return "".join(lines)


def between(page: Path, name: str) -> str:
    """The generated part of a page."""
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->\n"
    return text[text.index(begin) + len(begin) : text.index(end)]


def write_between(page: Path, name: str, part: str) -> None:
    """Replace the generated part of a page."""
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->\n"
    page.write_text(
        text[: text.index(begin) + len(begin)] + part + text[text.index(end) :], encoding="utf-8", newline="\n"
    )


def refresh_outputs(page: Path) -> int:
    """Replace outputs in the console blocks of a page; returns how many changed."""
    lines = page.read_text(encoding="utf-8").splitlines()
    changes: list[tuple[int, int, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks(page):
            if block.file is not None:
                (Path(folder) / block.file).write_text(block.text, encoding="utf-8")
            if block.language != "console":
                continue
            for command in commands(block):
                if command.output:
                    _, printed = run_command(command.argv, Path(folder))
                    shown = _abridged(command, printed)
                    start = block.line - 1 + command.offset
                    if shown != list(command.output):
                        changes.append((start, start + len(command.output), shown))
    for start, end, shown in reversed(changes):
        lines[start:end] = shown
    page.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return len(changes)


def _abridged(command: Command, printed: list[str]) -> list[str]:
    cuts = [index for index, line in enumerate(command.output) if line.strip() == "..."]
    if not cuts:
        return printed
    head, tail = cuts[0], len(command.output) - cuts[-1] - 1
    return [*printed[:head], "...", *(printed[-tail:] if tail else [])]


if __name__ == "__main__":
    main(sys.argv[1:])
