"""plan-config engine and plan-config resolve."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.cli import main
from tests.engine.expected import cases, concrete, folder_of

KIMI = ["--model-path", folder_of("kimi-int4"), "--trust-remote-code", "--tp-size", "8"]


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = 0
    try:
        code = int(main(list(argv)) or 0)
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_resolve_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "resolve", "--hw", "b300", "--engine-version", "0.5.23", "--format", "json", "--", *KIMI)
    content = json.loads(out)
    assert code == 0
    assert content["error"] is None
    assert content["effective"]["attention_backend"] == "trtllm_mla"
    assert content["effective"]["cuda_graph_backend_decode"] == "full"
    assert content["effective"]["cuda_graph_max_bs_decode"] == 512
    decision = next(item for item in content["decisions"] if item["field"] == "page_size")
    assert (decision["from"], decision["to"]) == (None, 64)
    assert decision["because"]
    assert decision["source"].startswith("0.5.23 srt/")


def test_resolve_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "resolve", "--hw", "b300", "--engine-version", "0.5.23", "--", *KIMI, "--page-size", "1")
    assert code == 0
    assert "page_size" in out
    assert "trtllm_mla" in out


def test_a_program_in_front_is_taken_off(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["python", "-m", "sglang.launch_server", *KIMI]
    code, out, _ = run(capsys, "resolve", "--hw", "b300", "--format", "json", "--", *argv)
    assert code == 0
    assert json.loads(out)["effective"]["tp_size"] == 8


def test_a_refusal_of_the_engine_is_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in cases("0.5.23") if "error" in case and case["error"]["type"] == "ValueError")
    argv = ["resolve", "--hw", case["hw"], "--engine-version", "0.5.23"]
    code, out, _ = run(capsys, *argv, "--format", "json", "--", *concrete(case["argv"]))
    assert code == 1
    assert json.loads(out)["error"]["type"] == "ValueError"
    code, out, _ = run(capsys, *argv, "--", *concrete(case["argv"]))
    assert code == 1
    assert "the engine raises ValueError" in out


def test_what_the_parser_would_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["resolve", "--hw", "b300", "--engine-version", "0.5.23", "--format", "json", "--", *KIMI]
    code, out, err = run(capsys, *argv, "--cuda-graph-max-bs", "8")
    assert code == 2
    assert json.loads(out)["error"]["type"] == "SystemExit"
    assert "ambiguous option" in err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["resolve", "--hw", "b301", "--", *KIMI], "b300"),
        (["resolve", "--hw", "b300", "--engine-version", "seven", "--", *KIMI], "unknown engine version"),
        (["resolve", "--hw", "b300", "--dialect", "feild", "--", *KIMI], "field"),
        (["resolve", "--hw", "b300", "--", "--model-path", "/no/such/folder"], "no such folder"),
        (["resolve", "--hw", "b300", "--", "--tp-size", "8"], "--model-path"),
        (["resolve", "--hw", "b300", "--env", "NAME", "--", *KIMI], "NAME=VALUE"),
        (["engine", "add", "/no/such.whl"], "no such file"),
        (["engine", "show", "9.9"], "unknown engine version"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], argv: list[str], words: str) -> None:
    code, _, err = run(capsys, *argv)
    assert code == 2
    assert words in err
    assert "Traceback" not in err


def test_a_folder_without_the_needed_keys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["Qwen3ForCausalLM"]}', encoding="utf-8")
    code, _, err = run(capsys, "resolve", "--hw", "b300", "--", "--model-path", str(tmp_path))
    assert code == 2
    assert "hidden_size" in err
    assert "num_attention_heads" in err


def test_without_cuda(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["resolve", "--hw", "h200", "--engine-version", "0.5.23", "--format", "json"]
    seen = {}
    for switch in ([], ["--without-cuda"]):
        _, out, _ = run(capsys, *argv, *switch, "--", "--model-path", folder_of("qwen3-dense"))
        seen[bool(switch)] = json.loads(out)["effective"]["attention_backend"]
    assert seen == {False: "fa3", True: "flashinfer"}


def test_engine_list_show_and_diff(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "engine", "list")
    assert code == 0
    assert "0.5.12.post1" in out
    code, out, _ = run(capsys, "engine", "show", "0.5.23", "--flag", "cuda-graph-max-bs", "--format", "json")
    assert code == 0
    assert {name for flag in json.loads(out)["flags"] for name in flag["names"]} >= {"--cuda-graph-max-bs-decode"}
    code, out, _ = run(capsys, "engine", "diff", "0.5.12.post1", "0.5.23")
    assert code == 0
    assert "--cuda-graph-max-bs-decode" in out
    code, out, _ = run(capsys, "engine", "diff", "0.5.12.post1", "0.5.23", "--format", "json")
    assert ["--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"] in json.loads(out)["renamed"]
