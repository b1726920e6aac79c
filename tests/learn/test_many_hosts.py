"""A sweep on several hosts: one trial a host, one journal, and a lost host costs only its running trial."""

from __future__ import annotations

import heapq
import os
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from planner.domain import Launch, Observation
from planner.launch.ledger import Ledger
from planner.learn.journal import open_journal
from planner.learn.many_hosts import Done, RayHosts, ledger_recorder, sweep_hosts
from planner.learn.order import Pool
from planner.learn.pool import pool_of_launches
from planner.learn.trial import Result, Trial


def pool(n: int = 12) -> Pool:
    launches = [Launch(argv=("python", "-m", "sglang.launch_server", "--n", str(number))) for number in range(n)]
    return pool_of_launches(launches, minutes=5.0)


def seen(trial: Trial, attempt: int) -> Observation:
    return Observation(
        id=f"{trial.id}-{attempt}", hardware="box", model="m", engine_version="1", source="test", tok_per_s=rate(trial)
    )


def rate(trial: Trial) -> float:
    return 100.0 + 40.0 * np.sin(int(trial.argv[-1]))


class SimulatedHosts:
    """Hosts in simulated time; one of them is lost while it runs its second trial."""

    def __init__(self, n: int, lost: str | None = None) -> None:
        self.alive = [f"host{number}" for number in range(n)]
        self.lost = lost
        self.now = 0.0
        self.queue: list[tuple[float, str, Trial, int]] = []
        self.submitted: Counter[str] = Counter()
        self.most_at_once = 0

    def names(self) -> Sequence[str]:
        return list(self.alive)

    def submit(self, host: str, trial: Trial, attempt: int) -> None:
        assert host in self.alive
        assert host not in {entry[1] for entry in self.queue}, "two trials on one host"
        assert trial.id not in {entry[2].id for entry in self.queue}, "one trial on two hosts"
        self.submitted[host] += 1
        heapq.heappush(self.queue, (self.now + 100 + 10 * self.submitted[host], host, trial, attempt))
        self.most_at_once = max(self.most_at_once, len(self.queue))

    def wait(self) -> Done:
        self.now, host, trial, attempt = heapq.heappop(self.queue)
        if host == self.lost and self.submitted[host] == 2:
            self.alive.remove(host)
            return Done(host, None)
        result = Result(ok=True, cause="ok", tok_per_s=rate(trial), took_s=100.0)
        return Done(host, result, (seen(trial, attempt),))


def test_hosts_share_one_journal_and_one_ledger(tmp_path: Path) -> None:
    hosts = SimulatedHosts(3)
    ledger = tmp_path / "runs.db"
    with open_journal(tmp_path / "journal", header={}) as journal:
        report = sweep_hosts(pool(), hosts, journal, record=ledger_recorder(ledger), n_gpus=8, one_knob=False)
    assert hosts.most_at_once == 3
    assert max(Counter(one.trial.id for one in report.tried).values()) == 1
    assert report.best is not None
    assert report.best.tok_per_s == max(rate(trial) for trial in pool().trials)
    with Ledger(ledger) as opened:
        assert len(list(opened.each())) == report.cost.n_launches
    assert report.cost.gpu_hours == pytest.approx(report.cost.n_launches * 100.0 / 3600.0 * 8)


def test_a_lost_host_costs_its_running_trial_only(tmp_path: Path) -> None:
    hosts = SimulatedHosts(3, lost="host1")
    with open_journal(tmp_path / "journal", header={}) as journal:
        report = sweep_hosts(pool(), hosts, journal, one_knob=False)
        finished = Counter(trial.id for trial, _ in journal.finished)
    assert max(finished.values()) == 1
    assert hosts.submitted["host1"] == 2
    assert sum(hosts.submitted.values()) == report.cost.n_launches + 1
    assert "1 hosts were lost" in report.why_stopped


def test_a_sweep_without_hosts_left_says_so(tmp_path: Path) -> None:
    hosts = SimulatedHosts(1, lost="host0")
    with open_journal(tmp_path / "journal", header={}) as journal:
        report = sweep_hosts(pool(), hosts, journal, one_knob=False)
        assert report.cost.n_launches == 1
        assert report.why_stopped.startswith("no host is left")
        again = sweep_hosts(pool(), SimulatedHosts(2), journal, one_knob=False)
    assert again.cost.n_launches > 5


@pytest.mark.parametrize("n", [1, 4])
def test_a_budget_of_launches_counts_those_that_run(tmp_path: Path, n: int) -> None:
    with open_journal(tmp_path / "journal", header={}) as journal:
        report = sweep_hosts(pool(), SimulatedHosts(3), journal, one_knob=False, max_launches=n)
    assert report.cost.n_launches == n


# -- Ray -------------------------------------------------------------------------------------------------------------
def test_a_local_ray_cluster(tmp_path: Path) -> None:
    """Three nodes of one machine; the worker of one trial is killed: that trial alone has no result."""
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    marker = tmp_path / "killed"
    victim = pool(6).trials[3].id

    def run(trial: Trial, attempt: int) -> tuple[Result, tuple[Observation, ...]]:
        if trial.id == victim and not marker.exists():
            marker.write_text("once")
            os.kill(os.getpid(), signal.SIGKILL)
        return Result(ok=True, cause="ok", tok_per_s=100.0 + len(trial.id), took_s=1.0), ()

    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        with open_journal(tmp_path / "journal", header={}) as journal:
            report = sweep_hosts(pool(6), RayHosts(run), journal, one_knob=False)
            finished = Counter(trial.id for trial, _ in journal.finished)
        assert max(finished.values()) == 1
        assert report.cost.n_launches >= 3
        assert len(RayHosts(run).names()) == 3
    finally:
        ray.shutdown()
        cluster.shutdown()
