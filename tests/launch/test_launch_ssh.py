"""Over ssh: words arrive unchanged, a failure of ssh is seen, a lost connection ends the server.

Runs against a real sshd on the loopback where one is installed, and against a scripted client otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.launch.host import HostLostError, SshHost
from planner.launch.preflight import look
from planner.launch.progress import SilentUi
from planner.launch.session import Order, Session, free_port
from planner.launch.target import Target
from planner.launch.verdict import LaunchReport
from tests.launch.launch_fakes import on_path, put_command
from tests.launch.launch_kit import FAST, standins_of
from tests.launch.standin import Truth

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    """A real sshd on a loopback port that takes one key; keys and settings live in a folder of the test."""
    if not os.access(SSHD, os.X_OK) or shutil.which("ssh-keygen") is None:
        pytest.skip("no sshd on this machine")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    port = free_port()
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        f"PidFile {folder}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
    )
    os.makedirs("/run/sshd", exist_ok=True)
    daemon = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.DEVNULL)
    words = ["-F", "none", "-p", str(port), "-i", str(folder / "user"), "-o", "IdentitiesOnly=yes"]
    words += ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={folder}/known", "-o", "LogLevel=ERROR"]
    host = SshHost("127.0.0.1", options=tuple(words))
    deadline = time.monotonic() + 10
    while True:
        try:
            host.run(["true"], timeout_s=10)
            break
        except HostLostError:
            if time.monotonic() > deadline:
                daemon.terminate()
                daemon.wait()
                pytest.skip("sshd does not take connections here")
            time.sleep(0.1)
    yield host
    daemon.terminate()
    daemon.wait()


def run_over(host: SshHost, target: Target, run_dir: Path) -> LaunchReport:
    host = replace(host, forward=(free_port(), target.port))
    return Session(Order(target=target, run_dir=run_dir, limits=FAST, host=host), SilentUi()).run()


AWKWARD = ["a b", "", "$HOME", "`id`", "'", '"', "\\", "*", "ü;|&", "new\nline", "--", "~"]


def test_words_arrive_unchanged(sshd: SshHost) -> None:
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    done = sshd.run([sys.executable, "-c", code, *AWKWARD], timeout_s=20)
    assert __import__("json").loads(done.stdout) == AWKWARD


def test_real_sshd_launch(sshd: SshHost, make_target: Callable[..., Target], tmp_path: Path, site: Path) -> None:
    report = run_over(sshd, make_target(), tmp_path / "run")
    assert report.ok, f"{report.cause}: {report.detail}"
    assert (tmp_path / "run" / "server.log").read_text().count("fired up")


def test_real_sshd_fault_is_named(sshd: SshHost, make_target: Callable[..., Target], tmp_path: Path) -> None:
    report = run_over(sshd, make_target(Truth(faults=("oom_capture",))), tmp_path / "run")
    assert report.cause == "oom-capture", report.detail


def test_connection_lost(sshd: SshHost, make_target: Callable[..., Target], tmp_path: Path, site: Path) -> None:
    """The ssh client is killed in the middle: the cause is named, and the server on the host ends by itself."""
    import threading

    def cut() -> None:
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            for name in os.listdir("/proc"):
                if name.isdigit():
                    try:
                        words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                    except OSError:
                        continue
                    if words[0] == b"ssh" and any(b"PR_SET_CHILD_SUBREAPER" in word for word in words):
                        while not standins_of(site):
                            time.sleep(0.02)
                        os.kill(int(name), 9)
                        return
            time.sleep(0.02)

    thread = threading.Thread(target=cut)
    thread.start()
    report = run_over(sshd, make_target(Truth(faults=("never_ready",))), tmp_path / "run")
    thread.join()
    assert report.cause == "ssh-lost", report.detail


@pytest.fixture
def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshHost:
    put_command(tmp_path / "bin", "ssh")
    monkeypatch.setenv("PATH", on_path(tmp_path / "bin"))
    monkeypatch.setenv("FAKE_STATE", str(tmp_path))
    return SshHost("example")


def test_unreachable_host(
    fake_ssh: SshHost, monkeypatch: pytest.MonkeyPatch, make_target: Callable[..., Target], tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_SSH", "unreachable")
    with pytest.raises(HostLostError, match="Connection refused"):
        run_over(fake_ssh, make_target(), tmp_path / "run")


def test_probe_over_scripted_ssh(fake_ssh: SshHost, site: Path) -> None:
    found = look(fake_ssh, sys.executable, arguments=["--model-path", "a b"], env={"PYTHONPATH": str(site)})
    assert found["sglang"] == "0.5.23"
    assert found["parser"] == {"ok": True, "stderr": ""}


@settings(max_examples=60)
@given(st.lists(st.text(max_size=10), max_size=5))
def test_one_shell_line_gives_the_words_back(words: list[str]) -> None:
    import shlex

    line = SshHost("h").command(["x", *words])[-1]
    assert shlex.split(line) == ["x", *words]
