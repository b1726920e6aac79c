"""The documentation is run: python blocks, commands with their output and exit codes, links, the README's lists."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from planner.cli import cli
from tests.docs.docs_pages import OWN_PAGES, PAGES, ROOT, Command, blocks, commands, matches, page_name, run_command

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON_PAGES = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]
CONSOLE_PAGES = [page for page in PAGES if any(block.language == "console" for block in blocks(page))]


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=page_name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Blocks of one page share their names, as a reader who types them in order would have it."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(page):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.text
            exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", CONSOLE_PAGES, ids=page_name)
def test_commands_print_and_exit_as_shown(page: Path, tmp_path: Path):
    """A line ``$ plan-config ... # exit N`` exits with N (0 when nothing is stated) and prints what stands below it."""
    for block in blocks(page):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for command in commands(block):
            _exists(command)
            if page_name(page) in OWN_PAGES or command.output or command.stated_exit is not None:
                code, printed = run_command(command.argv, tmp_path)
                where = f"{page_name(page)}:{command.line}"
                assert code == (command.stated_exit or 0), f"{where}: exit {code}\n" + "\n".join(printed)
                if command.output:
                    assert matches(command.output, printed), f"{where} prints now\n" + "\n".join(printed)


def _exists(command: Command) -> None:
    """Names and options of a command line exist, run or not."""
    node: click.Command = cli
    context = click.Context(cli)
    words = list(command.argv)
    while isinstance(node, click.Group) and words and not words[0].startswith("-"):
        found = node.get_command(context, words[0])
        assert found is not None, f"{page_name(command.block.page)}:{command.line}: no command {words[0]}"
        node = found
        words.pop(0)
    known = {name for parameter in node.params for name in (*parameter.opts, *parameter.secondary_opts)}
    if "--" in words:
        words = words[: words.index("--")]
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name != "--help":
            assert name in known, f"{page_name(command.block.page)}:{command.line}: {node.name} has no {name}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http://", "https://", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page_name(page)}: {target}"


def test_readme_has_the_commands_of_one_line_each_that_set_everything_up():
    """One ends with a plan, the other with the tests; the second is the one that the whole run of ``.ci/run`` uses."""
    setup = next(block for block in blocks(ROOT / "README.md") if "venv" in block.text)
    lines = [line.removeprefix("$ ") for line in setup.lines if line.strip()]
    assert len(lines) == 2
    assert lines[0].endswith("plan-config --hw b300 --target-c 64")
    assert lines[1].endswith("pytest -n auto")
    assert lines[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_own_pages_exist():
    assert {page_name(page) for page in PAGES} >= OWN_PAGES
