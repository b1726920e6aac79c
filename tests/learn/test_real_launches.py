"""Trials through the launcher against the stand-in server: judged, measured, recorded, resumed, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.cli.isolate import isolate
from planner.cli.sweep import sweep
from planner.errors import InputError, MissingDataError
from planner.launch.ledger import Ledger
from planner.launch.session import free_port
from tests.launch.standin_site import make_site
from tests.launch.standin_truth import Truth


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like an installed SGLang."""
    return make_site(tmp_path_factory.mktemp("learn-site"))


def command(*extra: str, port: int) -> str:
    words = [sys.executable, "-m", "sglang.launch_server", "--port", str(port), "--model-path", "standin"]
    words += ["--attention-backend", "triton", "--enable-metrics", *extra]
    return " ".join(words)


def options(site: Path, truth: Truth) -> list[str]:
    env = {"PYTHONPATH": str(site)} | truth.env()
    words = [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
    words += ["--allow", "FLG001=the stand-in has flags of its own"]
    return [*words, "--ready-timeout", "20", "--call-timeout", "5", "--quiet", "--format", "json"]


MEASURE = ["--bench", "4", "--bench-context", "32", "--bench-output", "16", "--bench-minutes", "0.05"]


def listed(path: Path, port: int) -> Path:
    lines = [
        command("--max-running-requests", "4", "--enable-x", port=port),
        command("--max-running-requests", "4", port=port),
        command("--max-running-requests", "4", "--enable-y", port=port),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def left_of(site: Path) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes()
                environment = Path(f"/proc/{name}/environ").read_bytes()
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(site).encode() in environment and b"launch_server" in words and state != "Z":
                found.append(words.decode(errors="replace"))
    return found


def test_a_sweep_of_a_list_finds_the_slow_flag_and_goes_on_after_a_failure(site: Path, tmp_path: Path) -> None:
    """--enable-x is slow, --enable-y crashes: both are found, the fast launch wins, every launch is in the ledger."""
    truth = Truth(seed=1, slow_flags={"--enable-x": 0.4}, bad_flags=(("--enable-y",),), step_s=0.004)
    argv = ["--list", str(listed(tmp_path / "list", free_port())), "--hw", "cpu", "--dir", str(tmp_path / "sweep")]
    argv += ["--ledger", str(tmp_path / "runs.db"), *MEASURE, *options(site, truth)]
    done = CliRunner().invoke(sweep, argv)
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert "--enable-x" not in report["best"]["trial"]["argv"]
    causes = {one["trial"]["argv"][-1]: one["results"][-1]["cause"] for one in report["tried"]}
    assert causes["--enable-y"] == "cublas-exec-failed"
    assert causes["--enable-x"] == "ok"
    assert report["cost"]["n_launches"] == 3
    assert report["cost"]["minutes"] > 0
    with Ledger(tmp_path / "runs.db") as opened:
        assert sorted(one.outcome.cause for one in opened.each()) == ["cublas-exec-failed", "ok", "ok"]
    again = CliRunner().invoke(sweep, argv)
    assert json.loads(again.output)["cost"] == report["cost"], "a finished sweep was run again"
    assert not left_of(site)


def test_a_killed_sweep_leaves_no_server_and_goes_on(site: Path, tmp_path: Path) -> None:
    truth = Truth(seed=1, start_s=0.6)
    argv = ["--list", str(listed(tmp_path / "list", free_port())), "--hw", "cpu", "--dir", str(tmp_path / "sweep")]
    argv += ["--ledger", str(tmp_path / "runs.db"), "--max-launches", "2", *MEASURE, *options(site, truth)]
    code = "from planner.cli.sweep import sweep; import sys; sweep.main(args=sys.argv[1:])"
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", code, *argv], env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.DEVNULL
    ) as first:
        deadline = time.monotonic() + 60
        while not left_of(site) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert left_of(site), "no server was started"
        first.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 15
    while left_of(site) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left_of(site)
    done = CliRunner().invoke(sweep, argv)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["cost"]["n_launches"] == 2
    with Ledger(tmp_path / "runs.db") as opened:
        assert len(list(opened.each())) == 2


def test_launches_that_are_all_refused_are_bad_input_and_may_be_tried_again(site: Path, tmp_path: Path) -> None:
    """A Python without SGLang: exit 2, and the right one goes on in the same folder."""
    listing = listed(tmp_path / "list", free_port())
    listing.write_text(listing.read_text().splitlines()[1] + "\n")
    argv = ["--list", str(listing), "--hw", "cpu", "--dir", str(tmp_path / "sweep"), *MEASURE]
    good = options(site, Truth(seed=1))
    bad = [word.replace(str(site), str(tmp_path)) for word in good]
    with pytest.raises(InputError, match="nothing was launched"):
        CliRunner().invoke(sweep, [*argv, *bad], catch_exceptions=False)
    done = CliRunner().invoke(sweep, [*argv, *good], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["cost"]["n_launches"] == 1


def test_isolate_names_the_pair(site: Path, tmp_path: Path) -> None:
    """--enable-x and --enable-y crash together; --enable-nccl-nvls rides along and is exonerated."""
    port = free_port()
    (tmp_path / "good").write_text(command("--max-running-requests", "2", port=port) + "\n")
    extra = ("--enable-x", "--enable-y", "--enable-nccl-nvls")
    (tmp_path / "bad").write_text(command("--max-running-requests", "2", *extra, port=port) + "\n")
    argv = ["--good", str(tmp_path / "good"), "--bad", str(tmp_path / "bad"), "--dir", str(tmp_path / "isolate")]
    argv += ["--confirm", "1", *options(site, Truth(seed=1, bad_flags=(("--enable-x", "--enable-y"),)))]
    done = CliRunner().invoke(isolate, argv)
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert report["causes"] == [["--enable-x", "--enable-y"]]
    assert report["cause"] == "cublas-exec-failed"
    assert dict(map(tuple, report["singles"]))["--enable-nccl-nvls"] == "innocent"
    assert report["cost"]["n_launches"] <= 10


def test_a_sweep_on_a_local_ray_node(site: Path, tmp_path: Path) -> None:
    """--ray: the launches run in a worker, journal and ledger are written here."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    argv = ["--list", str(listed(tmp_path / "list", free_port())), "--hw", "cpu", "--dir", str(tmp_path / "sweep")]
    argv += ["--ledger", str(tmp_path / "runs.db"), "--ray", "local", "--max-launches", "2", *MEASURE]
    done = CliRunner().invoke(sweep, [*argv, *options(site, Truth(seed=1))])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["cost"]["n_launches"] == 2
    with Ledger(tmp_path / "runs.db") as opened:
        assert [one.outcome.cause for one in opened.each()] == ["ok", "ok"]
    assert not left_of(site)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--list", "absent"], "No such file"),
        (["--list", "empty", "--dir", "d"], "no command line"),
        (["--list", "other", "--dir", "d"], "cannot tell how"),
        (["--list", "empty", "--target-c", "8"], "not both"),
        (["--hw", "b300", "--target-c", "64"], "--dir: missing"),
        (["--hw", "b300", "--target-c", "4096", "--dir", "d"], "no safe candidate"),
        (["absent.json", "--dir", "d"], "absent.json"),
        (["plan.json", "--hw", "b300", "--dir", "d"], "not both"),
        (["--hw", "b300", "--target-c", "8", "--dir", "d", "--allow", "X"], "--allow"),
        (["--hw", "b300", "--target-c", "8", "--dir", "d", "--ledger", "other"], "not a ledger"),
    ],
)
def test_bad_input_is_told_before_anything_is_made(
    argv: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("# nothing\n")
    (tmp_path / "other").write_text("vllm serve model\n".replace("serve ", ""))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=text):
        CliRunner().invoke(sweep, argv, catch_exceptions=False)
    assert sorted(tmp_path.iterdir()) == before


def test_ray_that_is_not_installed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    argv = ["--list", str(listed(tmp_path / "list", 1)), "--dir", str(tmp_path / "sweep"), "--ray", "local", "--quiet"]
    with pytest.raises(MissingDataError, match="Ray is not installed"):
        CliRunner().invoke(sweep, argv, catch_exceptions=False)


def test_isolate_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--good: missing"):
        CliRunner().invoke(isolate, [], catch_exceptions=False)
    (tmp_path / "a").write_text(command(port=1) + "\n")
    argv = ["--good", str(tmp_path / "a"), "--bad", str(tmp_path / "a"), "--dir", str(tmp_path / "d")]
    with pytest.raises(InputError, match="do not differ"):
        CliRunner().invoke(isolate, argv, catch_exceptions=False)
