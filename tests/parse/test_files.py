"""Files and directories: what is read, what is passed over, what is a problem."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.parse import parse_argv, parse_path, parse_paths, parse_text
from planner.parse.reading import LARGEST_BYTES

LAUNCH = "python3 -m sglang.launch_server --tp 8\n"


def write(root: Path, name: str, content: str | bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_directory_is_walked_and_what_is_passed_over_is_listed(tmp_path: Path) -> None:
    write(tmp_path, "run.sh", LAUNCH)
    write(tmp_path, "deep/er/compose.yaml", f"services: {{a: {{image: i, command: {LAUNCH.strip()}}}}}\n")
    write(tmp_path, "readme.md", LAUNCH)
    write(tmp_path, "other.sh", "echo hello\n")
    write(tmp_path, "talk.sh", "pip install sglang\n")
    write(tmp_path, "data.txt", b"sglang\0\1")
    write(tmp_path, ".git/hook.sh", LAUNCH)
    write(tmp_path, "broken.yaml", "a: [sglang\nb: 1\n")
    tree = parse_paths([tmp_path])
    read = {Path(file.name).name: file for file in tree.files}
    assert sorted(read) == ["broken.yaml", "compose.yaml", "run.sh"]
    assert [len(read[name].launches) for name in sorted(read)] == [0, 1, 1]
    assert "YAML that does not parse" in read["broken.yaml"].problems[0].message
    reasons = {Path(item.path).name: item.reason for item in tree.skipped}
    assert reasons == {
        "readme.md": "not a kind of launch file",
        "other.sh": "no mention of SGLang",
        "talk.sh": "mentions SGLang and starts none",
        "data.txt": "not a text file",
        ".git": "folder of another tool",
    }


def test_an_empty_directory_is_a_problem(tmp_path: Path) -> None:
    tree = parse_paths([tmp_path])
    assert [problem.message for file in tree.files for problem in file.problems] == [
        "no SGLang launch in this directory"
    ]


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = write(tmp_path, "a.sh", b"\xff\xfe\x00sglang\xd8")
    good = write(tmp_path, "b.sh", LAUNCH)
    tree = parse_paths([bad, tmp_path / "absent.sh", good])
    assert [len(file.problems) for file in tree.files] == [1, 1, 0]
    assert "not a text file" in tree.files[0].problems[0].message
    assert "cannot be read" in tree.files[1].problems[0].message
    assert tree.files[1].problems[0].line == 1
    assert len(tree.files[2].launches) == 1


def test_the_line_of_bytes_that_are_no_text_is_named(tmp_path: Path) -> None:
    parsed = parse_path(write(tmp_path, "a.sh", LAUNCH.encode() + b"\n\xe9t\xe9\n"))
    assert [(problem.line, problem.message) for problem in parsed.problems] == [(3, "not a text file (UTF-8)")]


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.sh", LAUNCH.encode() + b"#" * LARGEST_BYTES)
    for parsed in (parse_path(path), parse_text(path.read_text(), name="a.sh")):
        assert not parsed.launches
        assert [problem.line for problem in parsed.problems] == [1]
        assert "larger than 10 MiB" in parsed.problems[0].message


def test_a_drop_in_replaces_the_start_of_its_unit_and_adds_variables(tmp_path: Path) -> None:
    write(tmp_path, "s.service", "[Service]\nEnvironment=A=1 B=1\nExecStart=python3 -m sglang.launch_server --tp 1\n")
    write(tmp_path, "s.service.d/10.conf", "[Service]\nEnvironment=B=2\n")
    write(tmp_path, "s.service.d/20.conf", "[Service]\nExecStart=\nExecStart=python3 -m sglang.launch_server --tp 2\n")
    tree = parse_paths([tmp_path])
    assert [problem for file in tree.files for problem in file.problems] == []
    launches = [(Path(file.name).name, launch) for file in tree.files for launch in file.launches]
    assert [(name, [token.text for token in launch.argv]) for name, launch in launches] == [("20.conf", ["--tp", "2"])]
    env = {item.name: (item.value.text, Path(item.file or "").name) for item in launches[0][1].env}
    assert env == {"A": ("1", "s.service"), "B": ("2", "10.conf")}
    assert [(Path(item.path).name, item.reason.rsplit("/", 1)[0]) for item in tree.skipped] == [
        ("s.service", f"its ExecStart is replaced by {tmp_path}/s.service.d")
    ]


def test_words_that_are_split_already() -> None:
    parsed = parse_argv(["python3", "-m", "sglang.launch_server", "--json", '{"a": 1}', "--host", "", "$X"])
    assert [token.text for token in parsed.launches[0].argv] == ["--json", '{"a": 1}', "--host", "", "$X"]
    assert parse_argv(["--tp", "8"]).launches[0].flags[0].value == "8"


def test_an_unknown_form_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="compose"):
        parse_text(LAUNCH, name="a", form="composee")


def test_importing_the_parser_loads_no_reader() -> None:
    """Protects the start time of the command line: grammars and YAML are loaded when a file of their form is met."""
    code = (
        "import sys, planner.parse\n"
        "print([name for name in ('tree_sitter', 'tree_sitter_bash', 'ruamel', 'numpy', 'rich', 'subprocess')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_yaml_does_not_load_the_shell_grammar() -> None:
    code = (
        "import sys\nfrom planner.parse import parse_text\n"
        "parse_text('model-path: m\\ntp-size: 2\\n', name='a.yaml')\n"
        "print('tree_sitter' in sys.modules, 'ruamel.yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
