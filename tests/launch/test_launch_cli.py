"""The commands: exit codes, bad input named with a way out, nothing loaded that is not needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from planner.cli.bench import bench
from planner.cli.launch import launch
from planner.cli.ledger import ledger
from planner.cli.watch import watch
from planner.cli.workload import workload
from planner.errors import InputError, PlannerError
from planner.launch.ledger import Ledger
from planner.launch.session import free_port
from planner.launch.target import Target
from tests.launch.launch_kit import standins_of
from tests.launch.standin import Truth


def run(command: object, *words: str) -> Result:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)  # type: ignore[arg-type]


@pytest.fixture
def plan_json(make_target: Callable[..., Target], candidate: object) -> Callable[..., dict[str, object]]:
    """What `plan-config --format json` writes, for the stand-in."""

    def make(truth: Truth | None = None) -> dict[str, object]:
        target = make_target(truth)
        plan = {"argv": list(target.argv), "env": dict(target.env)}
        return {
            "schema_version": 1,
            "status": "optimal",
            "launch": plan,
            "launches": [plan],
            "effective": candidate.model_dump(mode="json"),  # type: ignore[attr-defined]
            "lifted": [],
        }

    return make


def test_plan_file(plan_json: Callable[..., dict[str, object]], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_json()))
    result = run(launch, str(path), "--then", "stop", "--run-dir", str(tmp_path / "run"), "--quiet")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("OK: right; stopped")


def test_plan_that_is_not_fulfilled(plan_json: Callable[..., dict[str, object]], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_json(Truth(faults=("throttled",)))))
    result = run(launch, str(path), "--then", "stop", "--run-dir", str(tmp_path / "run"), "--quiet", "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert report["cause"] == "throttled-max-running"
    assert report["mismatches"] == [] or report["mismatches"][0]["field"] == "max_running_requests"


BAD_PLANS = {
    "other version": (lambda plan: {**plan, "schema_version": 9}, "schema version 9"),
    "no version": (lambda plan: {key: plan[key] for key in plan if key != "schema_version"}, "schema version None"),
    "infeasible": (lambda plan: {**plan, "launch": None, "conflict": {"text": "A and B"}}, "A and B"),
    "not a plan": (lambda plan: {"findings": []}, "not a plan"),
    "a list": (lambda plan: [plan], "not a plan"),
    "broken candidate": (lambda plan: {**plan, "effective": {**plan["effective"], "q_len": 3}}, "q_len"),
    "no argv": (lambda plan: {**plan, "launches": [], "launch": {"argv": [], "env": {}}}, "nothing to launch"),
    "wrong port": (
        lambda plan: {
            **plan,
            "launches": [],
            "launch": {"argv": ["python", "-m", "sglang.launch_server", "--port", "x"]},
        },
        "not a port",
    ),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_bad_plan(case: str, plan_json: Callable[..., dict[str, object]], tmp_path: Path) -> None:
    change, words = BAD_PLANS[case]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(change(plan_json())))
    with pytest.raises(InputError, match=words):
        run(launch, str(path), "--run-dir", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{", b"plan"])
def test_plan_file_that_is_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        run(launch, str(path))
    with pytest.raises(InputError, match="No such file"):
        run(launch, str(tmp_path / "absent.json"))


ARGV = ["python", "-m", "sglang.launch_server", "--model-path", "x"]
BAD_CALLS: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "give one of"),
    "plan and argv": (["p.json", "--", *ARGV], "give one of"),
    "empty argv": (["--"], "give one of"),
    "no engine": (["--", "bash", "-c", "true"], "cannot tell how"),
    "allow without reason": (["--allow", "SPC001", "--", *ARGV], "no reason"),
    "two forms": (["--systemd", "a", "--docker", "b", "--", *ARGV], "two forms"),
    "hand over through ssh": (["--ssh", "h", "--then", "hand-over", "--", *ARGV], "ends with its connection"),
    "ssh option as host": (["--ssh=-oProxyCommand=x", "--", *ARGV], "no host name"),
    "bench of nothing": (["--bench", "0", "--", *ARGV], "whole numbers"),
    "bench of words": (["--bench", "a,b", "--", *ARGV], "whole numbers"),
    "no interpreter": (["--python", "/no/such/python", "--", *ARGV], "no interpreter"),
    "python without sglang": (["--python", sys.executable, "--", *ARGV], "has no SGLang"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_call(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, message = BAD_CALLS[case]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(PlannerError, match=message):
        run(launch, *words)


def test_blocking_finding_is_refused(make_target: Callable[..., Target], tmp_path: Path) -> None:
    """A DFLASH launch without a draft: the review knows that the engine raises."""
    words = [word for word in make_target().argv if word not in ("--speculative-draft-model-path", "draft")]
    with pytest.raises(InputError, match="SPC004"):
        run(launch, "--run-dir", str(tmp_path / "run"), "--", *words)
    assert not (tmp_path / "run").exists()


def test_refused_by_the_engine(
    make_target: Callable[..., Target], site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(site))
    words = make_target(None, "--page-size", "many").argv
    with pytest.raises(InputError, match="page-size"):
        run(
            launch,
            "--run-dir",
            str(tmp_path / "run"),
            "--allow",
            "FLG007=test",
            "--ledger",
            f"{tmp_path}/l.db",
            "--",
            *words,
        )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_ledger_is_refused_first(make_target: Callable[..., Target], tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("notes, long enough to have a header")
    with pytest.raises(InputError, match="not a ledger"):
        run(launch, "--ledger", str(path), "--run-dir", str(tmp_path / "run"), "--", *make_target().argv)
    assert path.read_text().startswith("notes")
    assert not (tmp_path / "run").exists()


@pytest.fixture
def served(make_target: Callable[..., Target], site: Path) -> object:
    """A stand-in that serves, and its address."""
    target = make_target(Truth(seed=1, accept_len=2.5), "--decode-log-interval", "4")
    environment = {**os.environ, **dict(target.env)}
    process = subprocess.Popen(target.argv, env=environment, stderr=subprocess.DEVNULL)
    import time
    from urllib.request import urlopen

    deadline = time.monotonic() + 15
    while True:
        try:
            urlopen(f"{target.base_url}/health", timeout=2).close()
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    yield target.base_url
    process.kill()
    process.wait()
    assert not standins_of(site)


def test_bench_of_a_running_server(served: str, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(site))
    path = tmp_path / "l.db"
    words = [
        "--python",
        sys.executable,
        "--concurrency",
        "2",
        "--context",
        "32",
        "--output-len",
        "24",
        "--minutes",
        "0.1",
    ]
    result = run(bench, served, *words, "--ledger", str(path), "--hardware", "standin", "--quiet", "--format", "json")
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.output)
    assert one["accept_len"] == pytest.approx(2.5, abs=0.4)
    with Ledger(path) as opened:
        assert opened.last(1)[0].id == one["id"]


def test_watch_and_workload(served: str) -> None:
    import threading
    from urllib.request import Request, urlopen

    stop = threading.Event()

    def load() -> None:
        body = json.dumps({"text": "x" * 400, "sampling_params": {"max_new_tokens": 50}}).encode()
        while not stop.is_set():
            request = Request(f"{served}/generate", body, {"Content-Type": "application/json"})
            urlopen(request, timeout=10).close()

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        fine = run(watch, served, "--count", "2", "--every", "0.4", "--format", "json")
        losing = run(watch, served, "--count", "1", "--every", "0.4", "--break-even", "2.9")
        derived = run(workload, "--from-metrics", served, "--seconds", "1", "--format", "json")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert fine.exit_code == 0, fine.output
    assert json.loads(fine.output.splitlines()[-1])["accept_len"] == pytest.approx(2.5, abs=0.3)
    assert losing.exit_code == 1
    assert "WARNING speculation-loses" in losing.output
    found = json.loads(derived.output)["workload"]
    assert found["target_c"] in (2, 3, 4)
    assert found["context_tok"] == 100
    assert found["output_tok"] == 50
    assert found["prefix_hit_frac"] > 0.5


def test_addresses_that_are_none() -> None:
    for command, words in ((watch, ["nonsense"]), (workload, ["--from-metrics", "ftp://x"]), (watch, [])):
        with pytest.raises(InputError):
            run(command, *words)
    gone = f"http://127.0.0.1:{free_port()}"
    for command, words in (
        (watch, [gone]),
        (workload, ["--from-metrics", gone]),
    ):
        with pytest.raises(InputError, match="no metrics"):
            run(command, *words)
    with pytest.raises(InputError, match="give one"):
        run(workload)


def test_ledger_commands(tmp_path: Path) -> None:
    from tests.launch.launch_kit import observation

    path = tmp_path / "l.db"
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(observation(n).model_dump_json() + "\n" for n in (1, 2)))
    assert run(ledger, "import", str(path), str(rows)).output == "2 added, 0 were there\n"
    assert run(ledger, "import", str(path), str(rows)).output == "0 added, 2 were there\n"
    assert "2 observations" in run(ledger, "show", str(path)).output
    assert json.loads(run(ledger, "show", str(path), "--format", "json").output)["totals"][0]["n"] == 2
    assert json.loads(run(ledger, "show", str(path), "--id", "obs-1").output)["id"] == "obs-1"
    assert "tok_per_s: 101 -> 102" in run(ledger, "diff", str(path), "obs-1", "obs-2").output
    assert run(ledger, "export", str(path), "--form", "csv", "--out", str(tmp_path / "x.csv")).exit_code == 0
    assert (tmp_path / "x.csv").read_text().count("\n") == 3
    with pytest.raises(InputError, match="no such observation"):
        run(ledger, "show", str(path), "--id", "obs-9")
    with pytest.raises(InputError, match="no such ledger"):
        run(ledger, "show", str(tmp_path / "absent.db"))


def test_help_of_every_command() -> None:
    for command in (launch, bench, watch, workload, ledger):
        assert run(command, "--help").exit_code == 0


def test_commands_load_nothing_heavy() -> None:
    """Protects the start-up time of planning: httpx, psutil, sqlite3 and rich come with the commands that use them."""
    code = (
        "import sys, planner.cli.launch, planner.cli.bench, planner.cli.watch\n"
        "import planner.cli.workload, planner.cli.ledger\n"
        "heavy = {'httpx', 'psutil', 'sqlite3', 'rich', 'asyncio', 'scipy', 'ortools', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
