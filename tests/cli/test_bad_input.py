"""Bad input of the main command: exit 2, every fault in one message each, nothing on stdout, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.cli import main

B300 = Path(__file__).resolve().parents[2] / "hardware_profiles" / "b300.toml"
HEADLINE = ("--hw", "b300", "--target-c", "64")

LIMIT = """\
schema_version = 1
[[limit]]
id = "MY-1"
title = "mine"
shape = "at_most"
quantity = "{quantity}"
known_good = 100
status = "suspected"
consequence = "crash"
seen_on = "a test"
[[limit.evidence]]
ref = "a run"
outcome = "fails"
value = 101
"""


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    """The lines of stderr, without the program's name."""
    with pytest.raises(SystemExit) as exit_:
        main(list(argv))
    captured = capsys.readouterr()
    assert exit_.value.code == 2, captured.out + captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return [line.removeprefix("plan-config: ") for line in captured.err.splitlines()]


CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "unknown hardware with the nearest names": (("--hw", "b30", "--target-c", "64"), ("--hw", "'b30'", "b300")),
    "unknown hardware with the list": (("--hw", "zzz", "--target-c", "64"), ("rtx_pro_6000", "h200")),
    "empty hardware": (("--hw", "", "--target-c", "64"), ("--hw", "empty")),
    "no hardware": (("--target-c", "64"), ("--hw", "missing")),
    "no clients": (("--hw", "b300"), ("--target-c", "missing")),
    "C of 0": (("--hw", "b300", "--target-c", "0"), ("--target-c", "got 0")),
    "C below 0": (("--hw", "b300", "--target-c", "-3"), ("--target-c", "got -3")),
    "C of 1e9": (("--hw", "b300", "--target-c", "1e9"), ("--target-c", "1000000000")),
    "C of nan": (("--hw", "b300", "--target-c", "nan"), ("--target-c", "'nan'")),
    "C of inf": (("--hw", "b300", "--target-c", "inf"), ("--target-c", "'inf'")),
    "half a client": (("--hw", "b300", "--target-c", "2.5"), ("--target-c", "whole number")),
    "no number": (("--hw", "b300", "--target-c", "many"), ("--target-c", "'many'")),
    "empty C": (("--hw", "b300", "--target-c", ""), ("--target-c", "whole number")),
    "unknown model": ((*HEADLINE, "--model", "kimi-k2"), ("--model", "did you mean kimi-k2.6")),
    "empty model": ((*HEADLINE, "--model", ""), ("--model", "empty")),
    "unknown drafter": ((*HEADLINE, "--drafter", "kimi-dflash"), ("--drafter", "kimi-k2.6-dflash")),
    "budget beyond what is searched": ((*HEADLINE, "--budget", "100"), ("--budget", "100", "64")),
    "budget beyond a chain": ((*HEADLINE, "--budget", "8", "--speculation", "chain"), ("--budget", "7 deep")),
    "budget beyond a width": ((*HEADLINE, "--budget", "20", "--topk", "1"), ("--budget", "7 deep")),
    "budget below 0": ((*HEADLINE, "--budget", "-1"), ("--budget", "got -1")),
    "budget without drafter": ((*HEADLINE, "--drafter", "none", "--budget", "4"), ("--budget", "needs a drafter")),
    "limits file missing": ((*HEADLINE, "--limits", "/no/such.toml"), ("/no/such.toml", "No such file")),
    "limits file is a folder": ((*HEADLINE, "--limits", "/"), ("/", "directory")),
    "limits file empty": ((*HEADLINE, "--limits", "/dev/null"), ("no [[limit]] entry", "docs/limits.md")),
    "empty name of limits": ((*HEADLINE, "--limits", ""), ("--limits", "empty")),
    "context beyond the model": ((*HEADLINE, "--context", "1000000"), ("--context", "262,144")),
    "context of 0": ((*HEADLINE, "--context", "0"), ("--context", "got 0")),
    "no output": ((*HEADLINE, "--output-len", "0"), ("--output-len", "got 0")),
    "hit above 1": ((*HEADLINE, "--prefix-hit", "2"), ("--prefix-hit", "got 2")),
    "temperature below 0": ((*HEADLINE, "--temperature", "-1"), ("--temperature", "got -1")),
    "temperature of nan": ((*HEADLINE, "--temperature", "nan"), ("--temperature", "'nan'")),
    "unknown domain": ((*HEADLINE, "--domain", "poems"), ("--domain", "'chat'", "'poems'")),
    "unknown need": ((*HEADLINE, "--needs", "images"), ("--needs", "'grammar'", "'images'")),
    "unknown risk": ((*HEADLINE, "--risk", "high"), ("--risk", "safe, edge")),
    "ceiling of 0": ((*HEADLINE, "--max-tpot-ms", "0"), ("--max-tpot-ms",)),
    "lift without reason": ((*HEADLINE, "--lift", "B300-GRAPH-Q-LEN"), ("--lift", "reason")),
    "lift with empty reason": ((*HEADLINE, "--lift", "B300-GRAPH-Q-LEN="), ("--lift", "reason")),
    "lift of an unknown limit": ((*HEADLINE, "--lift", "B300-GRAPH=x"), ("--lift", "B300-GRAPH-Q-LEN")),
    "unknown release": ((*HEADLINE, "--engine-version", "9.9"), ("'9.9'", "0.5.9")),
    "unknown dialect": ((*HEADLINE, "--dialect", "ours"), ("'ours'", "pr29907")),
    "quantile above 1": ((*HEADLINE, "--robust", "2"), ("--robust", "between 0 and 1")),
    "more GPUs than the box": ((*HEADLINE, "--gpus", "16"), ("--gpus", "1 to 8")),
    "no GPU": ((*HEADLINE, "--gpus", "0"), ("--gpus", "1 to 8")),
    "tp that does not divide": ((*HEADLINE, "--tp-size", "3"), ("--tp-size", "divide 8 GPUs")),
    "fraction above 1": ((*HEADLINE, "--mem-fraction", "2"), ("--mem-fraction", "got 2")),
    "unknown KV dtype": ((*HEADLINE, "--kv-cache-dtype", "fp4"), ("--kv-cache-dtype", "fp8_e4m3")),
    "backend not searched": ((*HEADLINE, "--attention-backend", "fa3"), ("--attention-backend", "triton")),
    "graphs neither on nor off": ((*HEADLINE, "--cuda-graph", "maybe"), ("--cuda-graph", "on or off")),
    "no grounds to predict": (("--hw", "a100", "--target-c", "8"), ("a100", "nothing was measured")),
    "unknown command": (("plam",), ("unknown command 'plam'",)),
    "unknown option": ((*HEADLINE, "--taget-c", "3"), ("--taget-c", "--target-c")),
    "unknown format": ((*HEADLINE, "--format", "xml"), ("'xml'", "json")),
}


@pytest.mark.parametrize(("argv", "words"), CASES.values(), ids=CASES.keys())
def test_one_clear_message(capsys, argv: tuple[str, ...], words: tuple[str, ...]):
    lines = refused(capsys, *argv)
    text = "\n".join(lines)
    for word in words:
        assert word in text
    if not text.startswith("Usage:"):
        assert len(lines) == 1


def test_all_problems_at_once(capsys, tmp_path: Path):
    """Nobody should mend one fault only to be told of the next."""
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMIT.format(quantity="verify_row_per_rank"))
    argv = ("--hw", "b30", "--target-c", "nan", "--model", "kimi", "--limits", str(limits), "--limits", "/no/such.toml")
    more = ("--budget", "x", "--temperature", "hot", "--risk", "high", "--lift", "A", "--dialect", "ours")
    text = "\n".join(refused(capsys, *argv, *more))
    for word in (
        "'b30'",
        "'nan'",
        "'kimi'",
        "verify_row_per_rank",
        "/no/such.toml",
        "'x'",
        "'hot'",
        "'high'",
        "'A'",
        "'ours'",
    ):
        assert word in text, text


def test_a_limits_file_that_names_an_unknown_quantity(capsys, tmp_path: Path):
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMIT.format(quantity="verify_row_per_rank"))
    (line,) = refused(capsys, *HEADLINE, "--limits", str(limits))
    assert line.startswith(f"{limits}:6: quantity: unknown quantity 'verify_row_per_rank'")
    assert "did you mean verify_rows_per_rank" in line


def test_a_typo_in_a_profile_is_named_with_file_line_key_and_the_nearest_key(capsys, tmp_path: Path):
    profile = tmp_path / "box.toml"
    text = B300.read_text(encoding="utf-8")
    profile.write_text(text.replace("\nlink_kind", "\nlink_knd"))
    number = next(i for i, line in enumerate(text.splitlines(), start=1) if line.startswith("link_kind"))
    lines = refused(capsys, "--hw", str(profile), "--target-c", "0")
    assert any(line.startswith(f"{profile}:{number}: link_knd: unknown key; did you mean link_kind") for line in lines)
    assert any("--target-c" in line for line in lines)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('link_kind = "nvlink"', 'link_kind = "pcie"', "nvls = true needs link_kind = nvlink"),
        ("n_gpus = 8", "n_gpus = 0", "n_gpus"),
        ("sm = 103", 'sm = "103"', "sm: input should be a valid integer"),
    ],
)
def test_a_profile_that_contradicts_itself(capsys, tmp_path: Path, old: str, new: str, word: str):
    text = B300.read_text(encoding="utf-8")
    assert old in text
    profile = tmp_path / "box.toml"
    profile.write_text(text.replace(old, new))
    (line,) = refused(capsys, "--hw", str(profile), "--target-c", "64")
    assert word in line
    assert str(profile) in line


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a = [\n", "not valid TOML"),
        (b"a = 1\na = 2\n", "not valid TOML"),
        (b"", "missing"),
        (b"{}", "not valid TOML"),
    ],
)
def test_a_profile_that_cannot_be_read(capsys, tmp_path: Path, content: bytes, word: str):
    profile = tmp_path / "box.toml"
    profile.write_bytes(content)
    assert word in "\n".join(refused(capsys, "--hw", str(profile), "--target-c", "64"))


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"architectures": 3}', b'{"num_hidden_layers": -1}', b"null"])
def test_a_config_json_that_is_none(capsys, tmp_path: Path, content: bytes):
    (tmp_path / "config.json").write_bytes(content)
    assert refused(capsys, *HEADLINE, "--model", str(tmp_path))
