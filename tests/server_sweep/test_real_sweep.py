"""`plan-config sweep` against the real SGLang 0.5.23 on two CPU cores (environment and model of tests/server)."""

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
SERVER = Path(__file__).parents[1] / "server"
ROOT = SERVER.parents[1]
PYTHON = Path(os.environ.get("PLAN_CONFIG_SERVER_PYTHON", ROOT / ".contract" / "0.5.23" / "bin" / "python"))


@pytest.fixture(scope="module")
def model() -> Path:
    """The trained model of tests/server, which must have run before."""
    if not PYTHON.exists():
        pytest.skip("no SGLang environment: run tests/server/make_env.sh")
    found = [path for path in (ROOT / ".contract").glob("tiny-trained-*") if (path / "config.json").exists()]
    if not found:
        pytest.skip("no trained model: run tests/server first")
    return max(found, key=lambda path: path.stat().st_mtime)


def test_two_launches_end_with_observations_and_a_report(model: Path, tmp_path: Path) -> None:
    """One knob (max_running_requests), two launches: both measured, one named best, the cost told."""
    words = [str(PYTHON), "-W", "ignore", "-m", "sglang.launch_server", "--model-path", str(model), "--port"]
    words += [str(free_port()), "--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native"]
    words += ["--sampling-backend", "pytorch", "--grammar-backend", "none", "--mem-fraction-static", "0.1"]
    words += ["--max-total-tokens", "8192", "--context-length", "1024", "--skip-server-warmup", "--enable-metrics"]
    words += ["--decode-log-interval", "5", "--disable-overlap-schedule", "--max-running-requests"]
    listed = tmp_path / "list"
    listed.write_text("".join(f"{' '.join([*words, requests])}\n" for requests in ("4", "2")))
    env = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(SERVER / "stubs")}
    argv = [sys.executable, "-c", "import sys; from planner.cli.sweep import sweep; sweep.main(args=sys.argv[1:])"]
    argv += ["--list", str(listed), "--hw", "cpu", "--dir", str(tmp_path / "sweep"), "--ready-timeout", "600"]
    argv += ["--ledger", str(tmp_path / "runs.db"), "--bench", "4", "--bench-context", "64", "--bench-output", "16"]
    argv += ["--bench-minutes", "0.2", "--format", "json"]
    argv += [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["cost"]["n_launches"] == 2
    assert report["cost"]["minutes"] > 0.5
    assert [result["ok"] for one in report["tried"] for result in one["results"]] == [True, True]
    assert report["best"]["results"][0]["tok_per_s"] > 1
    with Ledger(tmp_path / "runs.db") as opened:
        rows = list(opened.each())
    assert sorted(dict(row.effective)["max_running_requests"] for row in rows) == [2, 4]
