"""The commands check, fix, upgrade and rules: arguments in, text and exit codes out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from planner.cli.check import check
from planner.cli.fix import fix
from planner.cli.rules import rules
from planner.cli.upgrade import upgrade
from planner.errors import InputError

BAD = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable_metrics\n"


def run(command: object, *arguments: str, text: str | None = None) -> Result:
    result = CliRunner().invoke(command, list(arguments), input=text)  # type: ignore[arg-type]
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text(BAD)
    result = run(check, "serve.sh", "--engine-version", "0.5.16")
    assert result.exit_code == 1
    assert result.output.startswith("serve.sh:1:")
    assert " FLG002 error [crash] " in result.output
    assert "+ --enable-metrics" in result.output


def test_words_after_two_dashes() -> None:
    result = run(check, "--engine-version", "0.5.16", "--", "--model-path", "Qwen/Qwen3-8B", "--enable_metrics")
    assert result.exit_code == 1
    assert "FLG002" in result.output


def test_no_figures_beside_an_error_that_stops_the_server() -> None:
    words = [
        "--model-path",
        "moonshotai/Kimi-K2.6",
        "--trust-remote-code",
        "--tp",
        "8",
        "--mem-fraction-static",
        "0.85",
    ]
    words += ["--max-running-requests", "64", "--kv-cache-dtype", "bf16", "--enable-nccl-nvls"]
    asked = ("--hw", "b300", "--model", "kimi-k2.6", "--format", "json", "--")
    (runs,) = json.loads(run(check, *asked, *words).output)["launches"]
    assert runs["predicted"]
    assert runs["not_predicted"] is None
    (stops,) = json.loads(run(check, *asked, *words, "--ep-size", "3").output)["launches"]
    assert stops["predicted"] is None
    assert "PAR003" in stops["not_predicted"]


def test_standard_input_and_formats() -> None:
    result = run(check, "-", "--format", "json", text=BAD)
    assert json.loads(result.output)["findings"][0]["code"] == "FLG002"
    assert run(check, "-", "--fail-on", "never", text=BAD).exit_code == 0
    assert run(check, "-", "--fail-on", "note", text=BAD.replace("_metrics", "-metrics")).exit_code == 0


def test_show_effective_gives_reasons() -> None:
    text = BAD.replace("--enable_metrics", "--speculative-algorithm NGRAM")
    result = run(check, "-", "--hw", "b200", "--engine-version", "0.5.23", "--show-effective", text=text)
    assert "EFFECTIVE" in result.output
    assert "max_running_requests: (default) -> 48" in result.output


def test_nothing_named_and_unknown_options() -> None:
    with pytest.raises(InputError, match="nothing to check"):
        run(check)
    with pytest.raises(InputError) as fault:
        run(check, "-", "--hw", "b3000", "--dialect", "nope", "--gpus", "0", text=BAD)
    assert len(fault.value.problems) == 3, "all problems at once"


def test_missing_file_is_exit_2_and_others_are_checked(tmp_path: Path) -> None:
    good = tmp_path / "serve.sh"
    good.write_text(BAD)
    result = run(check, str(good), str(tmp_path / "no.sh"))
    assert result.exit_code == 2
    assert "FLG002" in result.output
    assert "no.sh" in result.output


def test_baseline_round_trip(tmp_path: Path) -> None:
    file, baseline = tmp_path / "serve.sh", tmp_path / "baseline.json"
    file.write_text(BAD)
    assert run(check, str(file), "--write-baseline", str(baseline)).exit_code == 0
    result = run(check, str(file), "--baseline", str(baseline))
    assert result.exit_code == 0
    assert "set aside" in result.output


def test_project_settings_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text(BAD)
    Path("pyproject.toml").write_text('[tool.plan-config.ignore]\nFLG002 = "our fork takes it"\n')
    result = run(check, "serve.sh")
    assert result.exit_code == 0
    assert "our fork takes it" in result.output


def test_output_file(tmp_path: Path) -> None:
    target = tmp_path / "review.sarif"
    assert run(check, "-", "--format", "sarif", "-o", str(target), text=BAD).exit_code == 1
    assert json.loads(target.read_text())["version"] == "2.1.0"


def test_fix_prints_a_diff_and_writes(tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    file.write_text(BAD)
    file.chmod(0o755)
    shown = run(fix, str(file), "--engine-version", "0.5.16")
    assert shown.exit_code == 0
    assert "+python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-metrics" in shown.output
    assert file.read_text() == BAD
    assert run(fix, str(file), "--write", "--engine-version", "0.5.16").exit_code == 0
    assert file.read_text() == BAD.replace("_metrics", "-metrics")
    assert file.stat().st_mode & 0o777 == 0o755
    assert run(check, str(file), "--engine-version", "0.5.16").exit_code == 0
    assert "nothing to change" in run(fix, str(file), "--engine-version", "0.5.16").output


def test_fix_says_what_is_left() -> None:
    text = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8\n"
    result = run(fix, "-", "--gpus", "4", text=text)
    assert result.exit_code == 1
    assert "left: <stdin>:1:" in result.output
    with pytest.raises(InputError):
        run(fix, "-", text="echo no launch\n")


def test_upgrade(tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    file.write_text("python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-max-bs 64\n")
    assert run(upgrade, str(file), "--to", "0.5.23", "--write").exit_code == 0
    assert "--cuda-graph-max-bs-decode 64" in file.read_text()
    with pytest.raises(InputError, match="names no release"):
        run(upgrade, str(file), "--to", "soon")


@pytest.mark.parametrize("format_", ["text", "json", "markdown"])
def test_rules(format_: str) -> None:
    assert "SPC001" in run(rules, "--format", format_).output
    assert "without an algorithm" in run(rules, "spc001", "--format", format_).output
    with pytest.raises(InputError, match="no rule"):
        run(rules, "SPC9999")


class _Server(BaseHTTPRequestHandler):
    answers: dict[str, tuple[int, str]]

    def do_GET(self) -> None:
        status, body = self.answers.get(self.path, (404, ""))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, tuple[int, str]]]]:
    answers: dict[str, tuple[int, str]] = {}
    handler = type("Handler", (_Server,), {"answers": answers})
    with HTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", answers
        http.shutdown()
        thread.join()


def test_a_running_server(server: tuple[str, dict[str, tuple[int, str]]]) -> None:
    """Older servers answer on /get_server_info only."""
    url, answers = server
    info = {
        "model_path": "deepseek-ai/DeepSeek-R1",
        "tp_size": 8,
        "ep_size": 3,
        "version": "0.5.16",
        "kv_cache_dtype": "auto",
        "internal_states": [{}],
    }
    answers["/get_server_info"] = (200, json.dumps(info))
    result = run(check, "--url", url, "--hw", "h200")
    assert result.exit_code == 1
    assert "PAR003" in result.output


@pytest.mark.parametrize(("status", "body"), [(200, "not json"), (200, "[]"), (200, "{}"), (500, ""), (404, "")])
def test_a_server_that_answers_otherwise(
    server: tuple[str, dict[str, tuple[int, str]]], status: int, body: str
) -> None:
    url, answers = server
    answers["/server_info"] = (status, body)
    with pytest.raises(InputError):
        run(check, "--url", url)
