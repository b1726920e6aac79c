"""However a launch ends (Ctrl-C, SIGTERM, kill -9, hand-over, a locked ledger), nothing is left and nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.domain import Observation
from planner.launch.ledger import Ledger
from planner.launch.session import Then
from planner.launch.target import Target
from planner.launch.verdict import LaunchReport
from tests.launch.launch_kit import standins_of
from tests.launch.standin import Truth

HERE = Path(__file__).parent


def start(target: Target, run_dir: Path, *options: str) -> subprocess.Popen[str]:
    """The command, in the background."""
    argv = [sys.executable, str(HERE / "runner.py"), "--run-dir", str(run_dir), *options, "--", *target.argv]
    environment = {**os.environ, **dict(target.env)}
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], object], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_serving(number: int, make_target: Callable[..., Target], tmp_path: Path, site: Path) -> None:
    process = start(make_target(), tmp_path / "run")
    assert process.stderr is not None
    for line in process.stderr:
        if "serving and right" in line:
            break
    process.send_signal(number)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert output.startswith("OK: right; stopped")
    wait_for(lambda: not standins_of(site))


def test_signal_while_starting(make_target: Callable[..., Target], tmp_path: Path, site: Path) -> None:
    process = start(make_target(Truth(faults=("never_ready",))), tmp_path / "run")
    wait_for(lambda: (tmp_path / "run" / "process.json").exists())
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "FAILED: interrupted" in output
    assert json.loads((tmp_path / "run" / "report.json").read_text())["cause"] == "interrupted"
    wait_for(lambda: not standins_of(site))


def test_second_signal_hurries_the_stop(make_target: Callable[..., Target], tmp_path: Path, site: Path) -> None:
    """A server that ignores SIGTERM has its grace; a second Ctrl-C does not wait for it."""
    process = start(make_target(Truth(faults=("never_ready", "ignore_sigterm"))), tmp_path / "run")
    wait_for(lambda: (tmp_path / "run" / "process.json").exists())
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert time.monotonic() - began < 4.0
    wait_for(lambda: not standins_of(site))


@pytest.mark.parametrize("seed", range(6))
def test_kill_9_of_the_launcher(seed: int, make_target: Callable[..., Target], tmp_path: Path, site: Path) -> None:
    """At a random moment: the server goes with it, and the ledger holds whole observations or none."""
    ledger = tmp_path / "ledger.db"
    process = start(make_target(), tmp_path / "run", "--then", "stop", "--ledger", str(ledger))
    time.sleep(random.Random(seed).uniform(0.2, 2.5))
    process.kill()
    process.communicate()
    wait_for(lambda: not standins_of(site))
    if ledger.exists():
        with Ledger(ledger, create=True) as opened:
            assert all(one.outcome.ok for one in opened.each())
    for path in (tmp_path / "run").glob("*.json"):
        json.loads(path.read_text())


def test_kill_9_of_the_supervisor(make_target: Callable[..., Target], tmp_path: Path, site: Path) -> None:
    """The kernel ends the server with its supervisor; the launcher says that it lost it."""
    process = start(make_target(Truth(faults=("never_ready",))), tmp_path / "run")
    record = tmp_path / "run" / "process.json"
    wait_for(record.exists)
    os.kill(json.loads(record.read_text())["supervisor_pid"], signal.SIGKILL)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "FAILED: supervisor-lost" in output
    wait_for(lambda: not standins_of(site))


def test_hand_over_and_stop(launch_it: Callable[..., LaunchReport], tmp_path: Path, site: Path) -> None:
    report = launch_it(then=Then.HAND_OVER)
    assert report.ok
    assert report.serving
    record = json.loads((tmp_path / "run" / "process.json").read_text())
    assert record["server_pid"] in standins_of(site)
    os.kill(record["supervisor_pid"], signal.SIGTERM)
    wait_for(lambda: not standins_of(site))


def test_failed_launch_is_never_handed_over(launch_it: Callable[..., LaunchReport], site: Path) -> None:
    report = launch_it(Truth(faults=("garbage",), seed=1), then=Then.HAND_OVER)
    assert (report.ok, report.serving) == (False, False)
    assert not standins_of(site)


def test_locked_ledger_loses_nothing(launch_it: Callable[..., LaunchReport], tmp_path: Path) -> None:
    """Another writer holds the ledger: the verdict says so, and the observations are kept beside the log."""
    path = tmp_path / "ledger.db"
    with Ledger(path, create=True):
        pass
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    def record(observations: tuple[Observation, ...]) -> None:
        with Ledger(path, busy_timeout_s=0.2) as ledger:
            ledger.append(observations)

    try:
        report = launch_it(record=record)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert report.cause == "ledger-locked"
    kept = (tmp_path / "run" / "observations.jsonl").read_text().splitlines()
    assert [Observation.model_validate_json(line).id for line in kept] == [one.id for one in report.observations]


def test_full_disk(launch_it: Callable[..., LaunchReport], tmp_path: Path) -> None:
    """The log cannot be written: the server is not blocked, the launch fails with the cause."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "server.log").symlink_to("/dev/full")
    report = launch_it()
    assert report.cause == "disk-full", report.detail


def test_disk_too_small(launch_it: Callable[..., LaunchReport], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.launch.preflight.MIN_DISK_BYTES", 1 << 62)
    report = launch_it()
    assert (report.cause, report.pid) == ("disk-full", None)


def test_shared_memory_too_small(launch_it: Callable[..., LaunchReport], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.launch.preflight.MIN_SHM_PER_RANK_BYTES", 1 << 60)
    report = launch_it(None, "--tp-size", "2")
    assert (report.cause, report.pid) == ("shm-too-small", None)


def test_port_taken(make_target: Callable[..., Target], tmp_path: Path) -> None:
    """Somebody else's server on the port: refused before anything starts, and that server lives on."""
    import socket

    from planner.launch.progress import SilentUi
    from planner.launch.session import Order, Session
    from tests.launch.launch_kit import FAST

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        target = make_target(port=holder.getsockname()[1])
        report = Session(Order(target=target, run_dir=tmp_path / "run", limits=FAST), SilentUi()).run()
    assert (report.cause, report.pid) == ("port-in-use", None)


def test_our_own_clock_jumps(launch_it: Callable[..., LaunchReport], monkeypatch: pytest.MonkeyPatch) -> None:
    """Wall-clock time is for records only: a jump of a day neither ends nor prolongs a wait."""
    real = time.time
    jumps = iter([86400.0, -86400.0] * 100_000)
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    report = launch_it()
    assert report.ok, report.detail
