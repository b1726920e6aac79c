"""kill -9 at a hundred random moments: nothing that finished is lost or repeated, and no server is left."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from planner.launch.ledger import Ledger

N_KILLS = 100
MARK = "PLAN_CONFIG_KILL_TEST"


def servers() -> list[int]:
    """Processes that were started by a trial of this test."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes()
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"{MARK}_{os.getpid()}".encode() in environment and state != "Z":
                found.append(int(name))
    return found


def ended(journal: Path) -> list[str]:
    """Trials that the journal calls finished, complete lines only."""
    if not journal.exists():
        return []
    events = [json.loads(line) for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [event["trial"]["id"] for event in events if event["event"] == "ended"]


def test_kill_at_a_hundred_random_moments(tmp_path: Path) -> None:
    rng = random.Random(11)
    script = Path(__file__).with_name("killed.py")
    root = str(Path(__file__).parents[2])
    argv = [sys.executable, str(script), str(tmp_path), f"{MARK}_{os.getpid()}"]
    journal = tmp_path / "journal.jsonl"
    before: list[str] = []
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
    ) as forks:
        assert forks.stdin is not None
        assert forks.stdout is not None
        for number in range(N_KILLS):
            forks.stdin.write(f"{number}\n")
            forks.stdin.flush()
            pid = int(forks.stdout.readline())
            time.sleep(rng.uniform(0.0, 0.5))
            with contextlib.suppress(ProcessLookupError):
                # On a quiet machine a sweep may have ended by itself.
                os.kill(pid, signal.SIGKILL)
            assert forks.stdout.readline() == "ended\n"
            now = ended(journal)
            assert now[: len(before)] == before, "a finished trial was lost"
            before = now
        forks.stdin.close()
    deadline = time.monotonic() + 15
    while (left := servers()) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "a server was left"
    assert len(before) > 20
    assert not [trial for trial, n in Counter(before).items() if n > 1], "a finished trial was run again"
    finished = Counter((tmp_path / "launches" / "finished").read_text().split())
    assert not [name for name, n in finished.items() if n > 1], "a launch that was over was repeated"
    with Ledger(tmp_path / "runs.db") as opened:
        kept = Counter(one.env for one in opened.each())
    assert max(kept.values()) == 1
    assert len(before) <= len(kept) <= len(before) + 1
