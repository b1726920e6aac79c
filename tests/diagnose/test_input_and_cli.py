# ruff: noqa: E501
"""Bad input is refused with a way out; the command's exit codes and forms."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.cli.diagnose import diagnose
from planner.diagnose import diagnose_lines, diagnose_path
from planner.errors import InputError

BAD = {
    "empty": b"",
    "blank": b"\n \n\t\n\r\n",
    "zip": b"PK\x03\x04" + bytes(range(256)) * 40,
    "nul": b"[2026-05-28] Load weight begin\n\x00\x00\x00\n",
    "gzip": gzip.compress(b"The server is fired up and ready to roll!\n"),
    "utf16": "The server is fired up and ready to roll!\n".encode("utf-16"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_log_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(BAD[name])
    with pytest.raises(InputError) as caught:
        diagnose_path(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    assert problem.hint


def test_a_file_that_is_not_there_or_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.log", tmp_path):
        with pytest.raises(InputError):
            diagnose_path(path)


def test_empty_lines_and_nul_lines_are_refused() -> None:
    with pytest.raises(InputError):
        diagnose_lines([])
    with pytest.raises(InputError):
        diagnose_lines(["", "  "])
    with pytest.raises(InputError):
        diagnose_lines(["fine", "a\x00b"])


def test_one_line_of_megabytes_is_cut_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"x" * (3 << 20) + b"\nlaunch_server.py: error: unrecognized arguments: --a\n" + b"y" * (2 << 20))
    diagnosis = diagnose_path(path)
    assert diagnosis.cause == "arg-parser"
    assert diagnosis.lines[0].number == 2


def test_colours_progress_bars_and_windows_ends(tmp_path: Path) -> None:
    path = tmp_path / "c.log"
    path.write_bytes(
        b"\x1b[31mCapturing batches (bs=64 avail_mem=1 GB):   0%|\x1b[0m\rCapturing batches (bs=56 avail_mem=1 GB)\r"
        b"\x1b[1mException: Capture cuda graph failed: CUDA out \x1b[0mof memory. Tried to allocate 1 GiB\r\n"
    )
    diagnosis = diagnose_path(path)
    assert diagnosis.cause == "oom-capture"
    assert diagnosis.suggested_limit is not None
    assert diagnosis.suggested_limit.value == 56


def run(*args: str, stdin: bytes | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(diagnose, list(args), input=stdin)
    return result.exit_code, result.output


def test_exit_codes_and_json(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("The server is fired up and ready to roll!\n")
    assert run(str(path))[0] == 0
    path.write_text("launch_server.py: error: unrecognized arguments: --enable_metrics\n")
    code, text = run(str(path))
    assert code == 1
    assert "arg-parser" in text
    code, text = run("-", "--format", "json", stdin=path.read_bytes())
    assert code == 1
    answer = json.loads(text)
    assert {"cause", "confidence", "lines", "not", "remedies", "suggested_limit"} <= set(answer)
    assert answer["cause"] == "arg-parser"
    assert answer["lines"][0]["number"] == 1


def test_unreadable_input_is_an_input_error_for_main(tmp_path: Path) -> None:
    """``planner.cli.main`` turns it into exit code 2."""
    result = CliRunner().invoke(diagnose, [str(tmp_path / "absent.log")])
    assert isinstance(result.exception, InputError)


def test_text_form_says_what_a_reader_needs(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(
        "[2026-05-28 10:02:00 TP0] Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=9, avail mem=1 GB\n"
        "Capturing batches (bs=256 avail_mem=31.02 GB):   0%\n"
        "Exception: Capture cuda graph failed: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`\n"
    )
    _, text = run(str(path))
    for word in ("CAUSE", "SHOWN BY", "NOT ", "TRY ", "LIMIT", "verify_rows_per_rank", "2304", "asynchronous"):
        assert word in text
