"""``plan-config hw|model|drafter|limits list|show|validate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.cli import main
from planner.data import load_limits, packaged_ids

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "hw": ROOT / "hardware_profiles" / "b300.toml",
    "model": ROOT / "planner" / "data" / "models" / "kimi-k2.6.toml",
    "drafter": ROOT / "planner" / "data" / "drafters" / "kimi-k2.6-dflash.toml",
    "limits": ROOT / "planner" / "data" / "limits" / "sglang.toml",
}
IDS = {
    "hw": packaged_ids("hardware"),
    "model": packaged_ids("model"),
    "drafter": packaged_ids("drafter"),
    "limits": [limit.id for limit in load_limits()],
}


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(list(argv))
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(exit_.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize("kind", FILES)
def test_list_has_one_line_for_each_that_ships(capsys, kind: str):
    code, out, err = run(capsys, kind, "list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == IDS[kind]


@pytest.mark.parametrize(("kind", "id_"), [(kind, id_) for kind, ids in IDS.items() for id_ in ids])
def test_every_profile_that_ships_can_be_shown(capsys, kind: str, id_: str):
    code, out, _ = run(capsys, kind, "show", id_)
    assert code == 0
    assert id_ in out
    code, out, _ = run(capsys, kind, "show", id_, "--format", "json")
    assert code == 0
    assert json.loads(out)["id"] == id_


def test_show_names_the_source_beside_the_number(capsys):
    _, out, _ = run(capsys, "hw", "show", "b300")
    (line,) = (line for line in out.splitlines() if line.startswith("hbm_bandwidth_bytes_per_s"))
    assert "datasheet" in line


@pytest.mark.parametrize("kind", FILES)
def test_the_packaged_files_are_without_fault(capsys, kind: str):
    code, out, err = run(capsys, kind, "validate", str(FILES[kind]))
    assert (code, err) == (0, "")
    assert out.startswith(f"{FILES[kind]}: ")
    assert out.endswith("no fault\n")


@pytest.mark.parametrize("kind", FILES)
def test_an_unknown_id_is_refused_with_the_known_ones(capsys, kind: str):
    code, out, err = run(capsys, kind, "show", "zzzz")
    assert (code, out) == (2, "")
    assert "zzzz" in err
    assert IDS[kind][0] in err


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(
    ("content", "word"),
    [(None, "No such file"), (b"\xff\xfe", "not UTF-8"), (b"a = [", "not valid TOML"), (b"nonsense = 1\n", "nonsense")],
)
def test_a_file_that_is_no_profile_is_refused(capsys, tmp_path: Path, kind: str, content: bytes | None, word: str):
    file = tmp_path / "mine.toml"
    if content is not None:
        file.write_bytes(content)
    code, out, err = run(capsys, kind, "validate", str(file))
    assert (code, out) == (2, "")
    assert str(file) in err
    assert word in err


@pytest.mark.parametrize(("kind", "key"), [("hw", "n_gpus"), ("model", "n_layers"), ("drafter", "block_size")])
def test_a_typo_is_named_with_its_line_and_the_nearest_key(capsys, tmp_path: Path, kind: str, key: str):
    text = FILES[kind].read_text(encoding="utf-8")
    number = next(i for i, line in enumerate(text.splitlines(), start=1) if line.startswith(f"{key} ="))
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(f"\n{key} =", f"\n{key}x ="))
    code, _, err = run(capsys, kind, "validate", str(file))
    assert code == 2
    assert f"{file}:{number}: {key}x: unknown key; did you mean {key}" in err
    assert f"{key}: missing" in err


@pytest.mark.parametrize(("kind", "key"), [("hw", "memory_bytes"), ("model", "hidden_dim")])
def test_a_number_without_a_source_is_refused(capsys, tmp_path: Path, kind: str, key: str):
    text = FILES[kind].read_text(encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(f'field = "{key}"', 'field = "id"'))
    code, _, err = run(capsys, kind, "validate", str(file))
    assert code == 2
    assert "numbers without a source" in err
    assert key in err


def test_every_fault_of_a_limits_file_is_told_at_once(capsys, tmp_path: Path):
    text = FILES["limits"].read_text(encoding="utf-8")
    text = text.replace('"verify_rows_per_rank"', '"verify_rows"', 1).replace('"established"', '"sure"', 1)
    text = text.replace("known_bad = 13", "known_bad = 3")
    file = tmp_path / "mine.toml"
    file.write_text(text)
    code, _, err = run(capsys, "limits", "validate", str(file))
    assert code == 2
    for word in ("known_bad 3 must lie above known_good 9", "'sure'"):
        assert word in err


@pytest.mark.parametrize("kind", FILES)
def test_a_group_without_a_command_shows_its_commands(capsys, kind: str):
    _, out, err = run(capsys, kind)
    for word in ("list", "show", "validate"):
        assert word in out + err
