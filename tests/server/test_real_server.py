"""`plan-config launch` against the real SGLang 0.5.23 on two CPU cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.launch.ledger import Ledger
from planner.launch.session import free_port

pytestmark = pytest.mark.server
HERE = Path(__file__).parent
SERVER_ENV = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HERE / "stubs")}


def launch(
    python: str, model: Path, run_dir: Path, *options: str, extra: tuple[str, ...] = ()
) -> tuple[int, dict[str, object]]:
    """Exit code and report of the command."""
    argv = [sys.executable, str(HERE.parent / "launch" / "runner.py"), "--run-dir", str(run_dir), "--format", "json"]
    argv += ["--ready-timeout", "600", "--then", "stop", *options, "--"]
    argv += [
        python,
        "-W",
        "ignore",
        "-m",
        "sglang.launch_server",
        "--model-path",
        str(model),
        "--port",
        str(free_port()),
    ]
    argv += ["--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native", "--sampling-backend"]
    argv += ["pytorch", "--grammar-backend", "none", "--disable-overlap-schedule", "--mem-fraction-static", "0.1"]
    argv += ["--max-total-tokens", "8192", "--context-length", "1024", "--max-running-requests", "4"]
    argv += ["--skip-server-warmup", "--enable-metrics", "--decode-log-interval", "5", *extra]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={**os.environ, **SERVER_ENV, "MARK": str(run_dir)}, timeout=1500
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def servers(run_dir: Path) -> list[int]:
    """Processes with the mark of this launch in their environment or on their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                told = Path(f"/proc/{name}/cmdline").read_bytes() + Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if str(run_dir).encode() in told:
                found.append(int(name))
    return found


def test_trained_model_is_right_and_measured(server_python: str, trained_model: Path, tmp_path: Path) -> None:
    """Launch, readiness, effective settings, canary, benchmark, observation, stop."""
    ledger = tmp_path / "ledger.db"
    options = ("--ledger", str(ledger), "--hardware", "cpu", "--bench", "1,4", "--bench-context", "64")
    options += ("--bench-output", "32", "--bench-minutes", "4")
    code, report = launch(server_python, trained_model, tmp_path / "run", *options)
    assert code == 0, f"{report['cause']}: {report['detail']}"
    figures = dict(report["canary"])  # type: ignore[call-overload]
    assert figures["batch_1_right_frac"] == figures["full_batch_4_right_frac"] == 1.0
    assert figures["below_capture_3_right_frac"] == 1.0
    assert figures["long_prompt_tok"] > 700
    assert figures["long_prompt_cached_tok"] > 0.9 * figures["long_prompt_tok"]
    with Ledger(ledger) as opened:
        rows = opened.last(10)
    assert {row.concurrency for row in rows} == {1, 4}
    for row in rows:
        assert row.engine_version == "0.5.23"
        assert row.tok_per_s is not None
        assert row.tok_per_s > 1
        effective = dict(row.effective)
        assert effective["attention_backend"] == "torch_native"
        assert effective["max_running_requests"] == 4
        assert row.log_digest == report["log_digest"]
    assert report["left_behind"] == 0
    assert servers(tmp_path / "run") == []


def test_dummy_weights_are_garbage(server_python: str, dummy_model: Path, tmp_path: Path) -> None:
    """A server that is ready and healthy, and whose answers are noise: failed, and rightly so."""
    code, report = launch(server_python, dummy_model, tmp_path / "run", extra=("--load-format", "dummy"))
    assert (code, report["cause"], report["stage"]) == (1, "garbage-output", "canary"), report["detail"]
    assert report["left_behind"] == 0
    assert servers(tmp_path / "run") == []


def test_crash_after_readiness(server_python: str, trained_model: Path, tmp_path: Path) -> None:
    """NGRAM on a CPU gets ready and dies at its first verify step: named from the log, ended without its 66 s wait."""
    extra = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4")
    code, report = launch(server_python, trained_model, tmp_path / "run", extra=extra)
    assert (code, report["stage"]) == (1, "canary"), report["detail"]
    assert report["cause"] == "attn-backend-mismatch", report["detail"]
    assert "'NoneType' object has no attribute 'shape'" in str(report["detail"])
    canary = next(stage for stage in report["stages"] if stage["stage"] == "canary")  # type: ignore[attr-defined]
    assert canary["took_s"] < 40
    assert report["left_behind"] == 0
    assert servers(tmp_path / "run") == []


def test_installed_parser_refuses(server_python: str, dummy_model: Path, tmp_path: Path) -> None:
    """Removed in 0.5.23: its own parser is asked before anything starts."""
    argv = [sys.executable, str(HERE.parent / "launch" / "runner.py"), "--run-dir", str(tmp_path / "run"), "--allow"]
    argv += ["FLG005=the test wants the engine's own answer", "--allow", "FLG004=same", "--", server_python, "-m"]
    argv += ["sglang.launch_server", "--model-path", str(dummy_model), "--cuda-graph-max-bs", "8"]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **SERVER_ENV}, timeout=300)
    assert done.returncode != 0
    assert "ambiguous option" in done.stderr, done.stderr
