"""The same plan as a unit and as a container: valid text, judged after the change, rolled back when it is not right."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.launch.forms import DockerForm, SystemdForm, deploy, unit_text
from planner.launch.forms.container import run_argv
from planner.launch.host import LocalHost
from planner.launch.progress import SilentUi
from planner.launch.session import free_port
from planner.launch.target import Target, target_from_argv
from planner.launch.verdict import LaunchReport
from tests.launch.launch_fakes import on_path, put_command
from tests.launch.launch_kit import FAST
from tests.launch.standin import Truth


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Path) -> Iterator[Path]:
    """A machine with scripted systemctl, journalctl and docker."""
    for name in ("systemctl", "journalctl", "docker"):
        put_command(tmp_path / "bin", name)
    folder = tmp_path / "state"
    folder.mkdir()
    (tmp_path / "units").mkdir()
    monkeypatch.setenv("PATH", on_path(tmp_path / "bin"))
    monkeypatch.setenv("FAKE_STATE", str(folder))
    monkeypatch.setenv("FAKE_UNITS", str(tmp_path / "units"))
    monkeypatch.setattr("planner.launch.forms.change.STATE_EVERY_S", 0.05)
    yield folder
    from tests.launch.launch_kit import standins_of

    for pid in standins_of(site):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)


def run(form: SystemdForm | DockerForm, target: Target, tmp_path: Path) -> LaunchReport:
    return deploy(form, target, run_dir=tmp_path / "run", limits=FAST, ui=SilentUi())


def systemd(target: Target, tmp_path: Path) -> SystemdForm:
    return SystemdForm(target, LocalHost(), "sglang-test", folder=str(tmp_path / "units"), python=sys.executable)


def test_unit_first_time(state: Path, tmp_path: Path, make_target: Callable[..., Target]) -> None:
    target = make_target()
    report = run(systemd(target, tmp_path), target, tmp_path)
    assert report.ok, f"{report.cause}: {report.detail} {report.notes}"
    assert report.serving
    assert sorted(path.name for path in (tmp_path / "units").iterdir()) == ["sglang-test.service"]
    calls = (state / "systemctl.log").read_text()
    assert calls.index("daemon-reload") < calls.index("restart sglang-test.service")


def test_unit_is_rolled_back(state: Path, tmp_path: Path, make_target: Callable[..., Target]) -> None:
    """A wrong new server: the old unit is byte for byte back and serves."""
    port = free_port()
    good = make_target(port=port)
    assert run(systemd(good, tmp_path), good, tmp_path).ok
    before = (tmp_path / "units" / "sglang-test.service").read_bytes()
    bad = make_target(Truth(faults=("garbage",), seed=1), "--enable-x", port=port)
    report = run(systemd(bad, tmp_path), bad, tmp_path)
    assert (report.cause, report.serving) == ("garbage-output", True)
    assert "rolled back: the previous configuration serves again" in report.notes
    assert (tmp_path / "units" / "sglang-test.service").read_bytes() == before
    assert len(list((tmp_path / "units").iterdir())) == 1


def test_unit_that_never_was_is_removed(state: Path, tmp_path: Path, make_target: Callable[..., Target]) -> None:
    target = make_target(Truth(faults=("oom_capture",)))
    report = run(systemd(target, tmp_path), target, tmp_path)
    assert (report.cause, report.serving) == ("oom-capture", False)
    assert list((tmp_path / "units").iterdir()) == []


def test_refused_arguments_change_nothing(state: Path, tmp_path: Path, make_target: Callable[..., Target]) -> None:
    target = make_target(None, "--no-such-flag")
    with pytest.raises(InputError, match="no-such-flag"):
        run(systemd(target, tmp_path), target, tmp_path)
    assert list((tmp_path / "units").iterdir()) == []
    assert "restart" not in (state / "systemctl.log").read_text() if (state / "systemctl.log").exists() else True


def docker(target: Target, image: str = "img") -> DockerForm:
    return DockerForm(target, LocalHost(), image, "sgl")


def test_container_and_roll_back(state: Path, tmp_path: Path, make_target: Callable[..., Target]) -> None:
    port = free_port()
    good = make_target(port=port)
    report = run(docker(good), good, tmp_path)
    assert report.ok, f"{report.cause}: {report.detail} {report.notes}"
    first = (state / "containers" / "sgl").read_text()
    bad = make_target(Truth(faults=("throttled",), seed=1), port=port)
    report = run(docker(bad), bad, tmp_path)
    assert (report.cause, report.serving) == ("throttled-max-running", True)
    assert "rolled back: the previous configuration serves again" in report.notes
    assert [path.name for path in (state / "containers").iterdir()] == ["sgl"]
    assert '"id"' in first
    assert first.split('"id": ')[1].split(",")[0] in (state / "containers" / "sgl").read_text()


def test_container_whose_image_is_missing(state: Path, tmp_path: Path, make_target: Callable[..., Target]) -> None:
    port = free_port()
    good = make_target(port=port)
    assert run(docker(good), good, tmp_path).ok
    report = run(docker(good, "missing"), good, tmp_path)
    assert report.cause == "start-failed"
    assert "manifest" in report.detail
    assert "rolled back: the previous configuration serves again" in report.notes


def test_pending_roll_back_is_not_overwritten(state: Path, tmp_path: Path, make_target: Callable[..., Target]) -> None:
    (state / "containers").mkdir()
    (state / "containers" / "sgl-previous").write_text('{"id": "x", "pid": 0, "argv": [], "env": {}}')
    target = make_target()
    with pytest.raises(InputError, match="sgl-previous"):
        run(docker(target), target, tmp_path)


def test_docker_argv() -> None:
    target = target_from_argv(["python", "-m", "sglang.launch_server", "--x", "a b"], env=[("K", "v w")])
    argv = run_argv(target, image="i:1", name="n", mounts=("/m:/m:ro",))
    assert argv[:3] == ["docker", "run", "--detach"]
    assert argv[-6:] == ["i:1", "python3", "-m", "sglang.launch_server", "--x", "a b"]
    assert argv[argv.index("--env") : argv.index("--env") + 2] == ["--env", "K=v w"]
    assert argv[argv.index("--volume") : argv.index("--volume") + 2] == ["--volume", "/m:/m:ro"]


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=0, max_size=12)


@given(st.lists(WORDS, max_size=4))
def test_unit_words_survive_quoting(words: list[str]) -> None:
    """Read back by the rules of systemd.service(5): shell-like quotes, ``%%`` and ``$$``."""
    text = unit_text(["/bin/x", *words], [], description="d")
    line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    read = shlex.split(line.removeprefix("ExecStart=").replace("%%", "%").replace("$$", "$"))
    assert read == ["/bin/x", *words]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_analyze_accepts_the_unit(tmp_path: Path) -> None:
    words = ["--json", '{"a": [1, "b c"]}', "50%", "$HOME", "back\\slash", "semi;colon", "ü", ""]
    text = unit_text([sys.executable, *words], [("A", "1 2"), ("B", "50%")], description="100% of it", cwd="/tmp")
    path = tmp_path / "x.service"
    path.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path.write_text(text.replace("Type=exec", "Type=nonsense\nBogus=1"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
    assert "nonsense" in done.stderr
