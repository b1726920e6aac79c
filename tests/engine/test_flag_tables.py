"""Flag tables: facts of each version, extraction from a wheel, differences."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from planner.data.engine.store import flag_table_names, read_flag_table, read_release_dates
from planner.engine.flag_diff import diff_tables
from planner.engine.flag_extract import extract_flags
from planner.engine.flag_table import FlagKind, FlagType
from planner.engine.flags import SGLANG_TWIN, VLLM_FLAGS, add_wheel, flag_table
from planner.errors import InputError

COUNTS = {
    "0.5.11": 374,
    "0.5.12.post1": 387,
    "0.5.13": 406,
    "0.5.15.post1": 437,
    "0.5.16": 460,
    "0.5.23": 531,
}
"""Arguments of the parser; those of 0.5.12.post1 and 0.5.23 were compared with the parsers themselves."""


@pytest.mark.parametrize("version", COUNTS)
def test_table(version: str) -> None:
    table = flag_table(version)
    assert len(table.flags) == COUNTS[version]
    assert table.version == version
    assert version in read_release_dates()
    names = [name for flag in table.flags for name in flag.names]
    assert len(names) == len(set(names))
    for flag in table.flags:
        assert all(name.startswith("-") for name in flag.names)
        if flag.choices is not None and flag.default is not None and flag.kind is FlagKind.VALUE:
            assert flag.default in flag.choices or flag.deprecated is not None or flag.dest == "schedule_policy"


@pytest.mark.parametrize("version", COUNTS)
def test_flags_of_vllm_are_none_of_sglang(version: str) -> None:
    assert not VLLM_FLAGS & flag_table(version).by_name.keys()
    assert SGLANG_TWIN.keys() <= VLLM_FLAGS


def test_twins_exist() -> None:
    known = flag_table("0.5.23").by_name
    assert all(twin is None or twin in known for twin in SGLANG_TWIN.values())


def test_renamed_graph_flags() -> None:
    changes = diff_tables(flag_table("0.5.12.post1"), flag_table("0.5.23"))
    renamed = dict(changes.renamed)
    assert renamed["--cuda-graph-max-bs"] == "--cuda-graph-max-bs-decode"
    assert renamed["--cuda-graph-bs"] == "--cuda-graph-bs-decode"
    assert "--attn-dp-size" in changes.added
    assert not set(changes.added) & set(changes.removed)


def test_a_table_does_not_differ_from_itself() -> None:
    changes = diff_tables(flag_table("0.5.16"), flag_table("0.5.16"))
    lists = (changes.added, changes.removed, changes.renamed, changes.deprecated, changes.changed)
    assert lists == ((), (), (), (), ())


OLD_FORM = """
import argparse
import dataclasses
from sglang.srt.names import BACKENDS
LOADS = ["auto", "dummy"]
@dataclasses.dataclass
class ServerArgs:
    model_path: str
    tp_size: int = 1
    load_format: str = "auto"
    backend: str = None
    quiet: bool = False

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True, help="A folder.")
        parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=ServerArgs.tp_size)
        parser.add_argument("--load-format", choices=LOADS, default=ServerArgs.load_format)
        parser.add_argument("--backend", choices=BACKENDS + ["own"], default=None)
        parser.add_argument("--quiet", action="store_true")
        parser.add_argument("--sizes", type=int, nargs="+")
"""
NAMES = 'BACKENDS = ["triton", "flashinfer"]\n'


def _wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 12, 1, 0, 0, 0)), text)
    return path


def test_a_new_wheel_becomes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the wheel runs: names, types, choices and defaults come from the syntax tree."""
    monkeypatch.setenv("PLAN_CONFIG_HOME", str(tmp_path / "home"))
    files = {
        "sglang/srt/server_args.py": OLD_FORM,
        "sglang/srt/names.py": NAMES,
        "sglang-0.9.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: sglang\nVersion: 0.9.1\n",
    }
    table, path = add_wheel(_wheel(tmp_path / "sglang-0.9.1-py3-none-any.whl", files))
    assert path.is_file()
    assert (table.version, table.released) == ("0.9.1", "2026-12-01")
    assert flag_table_names()["0.9.1"] == "added"
    again = flag_table("0.9.1")
    assert again.flags == table.flags
    assert again.by_name["--tp-size"].type is FlagType.INT
    assert again.by_name["--model"].required
    assert again.by_name["--load-format"].choices == ("auto", "dummy")
    assert again.by_name["--backend"].choices == ("triton", "flashinfer", "own")
    assert again.by_name["--sizes"].kind is FlagKind.LIST
    assert again.by_name["--quiet"].kind is FlagKind.TRUE
    assert again.defaults["tp_size"] == 1
    flag_table.cache_clear()


@pytest.mark.parametrize(
    ("name", "files", "words"),
    [
        ("other-1.0-py3-none-any.whl", {"other/__init__.py": ""}, "not an SGLang wheel"),
        ("sglang-1.0-py3-none-any.whl", {"sglang/srt/server_args.py": "x = 1\n"}, "add_cli_args"),
        ("noversion.whl", {"sglang/srt/server_args.py": OLD_FORM}, "names no version"),
    ],
)
def test_a_wheel_that_is_none_of_sglang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, str], words: str
) -> None:
    monkeypatch.setenv("PLAN_CONFIG_HOME", str(tmp_path / "home"))
    with pytest.raises(InputError, match=words):
        add_wheel(_wheel(tmp_path / name, files))
    assert not (tmp_path / "home").exists()


def test_a_file_that_is_no_wheel(tmp_path: Path) -> None:
    path = tmp_path / "sglang-1.0.whl"
    path.write_text("no archive", encoding="utf-8")
    with pytest.raises(InputError, match="not a wheel"):
        add_wheel(path)
    with pytest.raises(InputError, match="no such file"):
        add_wheel(tmp_path / "absent.whl")


def test_syntax_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InputError):
        extract_flags({"sglang/srt/server_args.py": "def ("}, version="1", released="2026-12-01")


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"version": "0.9.9", "released": "", "fields": {}, "flags": [{}]}']
)
def test_a_spoiled_table_of_the_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setenv("PLAN_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "0.9.9.json").write_text(content, encoding="utf-8")
    read_flag_table.cache_clear()
    with pytest.raises(InputError, match="engine add"):
        flag_table("0.9.9")
    read_flag_table.cache_clear()
