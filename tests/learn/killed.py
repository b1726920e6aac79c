"""Runs a sweep again and again in forked processes that a test kills. Started by test_killed_sweeps.py.

Launches are real processes under the launcher's supervisor; only SGLang is left out. Prints the process id of each
fork, then waits for it to end.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from planner.domain import Launch, Outcome
from planner.launch.process import ServerProcess
from planner.launch.progress import Ui
from planner.launch.records import Identity, new_observation
from planner.launch.session import Order
from planner.launch.verdict import LaunchReport, Stage
from planner.launch.writing import write_atomically
from planner.learn.journal import open_journal
from planner.learn.pool import pool_of_launches
from planner.learn.running import LaunchRunner, Subject
from planner.learn.sweep import sweep

N_TRIALS = 150


def launch(order: Order, ui: Ui) -> LaunchReport:
    """What a session does around a server, in its order."""
    # A server under the supervisor takes most of a second to come and go: one launch in seven has one.
    if random.random() < 0.15:
        env = dict(order.target.env)
        log = order.run_dir / "server.log"
        server = ServerProcess.start(order.target.argv, env=env, log=log, host=order.host)
        time.sleep(random.uniform(0.0, 0.03))
        server.stop(0.1)
    seen = new_observation(
        Identity(hardware="box", model="model"), target=order.target, engine_version="1", outcome=Outcome(cause="ok")
    ).replace(tok_per_s=100.0)
    write_atomically(order.run_dir / "observations.jsonl", seen.model_dump_json() + "\n")
    with (order.run_dir.parent / "finished").open("a") as stream:
        stream.write(f"{order.run_dir.name}\n")
    return LaunchReport(ok=True, cause="ok", stage=Stage.STOP, base_url="", argv=order.target.argv)


def main(folder: Path, mark: str) -> None:
    """One sweep, from where it stands."""
    argv = (sys.executable, "-S", "-m", "timeit", "-n", "1", "-r", "1", "import time; time.sleep(60)")
    launches = [Launch(argv=argv, env=((mark, "1"), ("TRIAL", str(n)))) for n in range(N_TRIALS)]
    runner = LaunchRunner(
        folder=folder / "launches",
        ledger=folder / "runs.db",
        subject=Subject(hardware="box"),
        review=False,
        launcher=launch,
    )
    with open_journal(folder / "journal.jsonl", header={"kind": "kills"}) as journal:
        sweep(pool_of_launches(launches, minutes=0.1), runner, journal, one_knob=False)


if __name__ == "__main__":
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            random.seed()
            main(Path(sys.argv[1]), sys.argv[2])
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)
