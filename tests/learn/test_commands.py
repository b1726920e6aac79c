"""`sweep` and `probe` from a plan to the report, with the engine in memory instead of a server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from planner.cli.probe import probe
from planner.cli.sweep import sweep
from planner.data import load_limits
from planner.domain.table import CandidateTable
from planner.errors import InputError
from planner.launch.progress import SilentUi
from planner.learn.trial import Result, Trial
from planner.limits import LimitContext, evaluate_limit
from planner.render.plan_json import plan_to_dict
from planner.search.planning import make_plan
from planner.search.request import Question, WorkloadInput, load_subject
from planner.search.space import Pins
from tests.learn.engine import Truth

ASKED = Question(hw="b300", workload=WorkloadInput(target_c=64), dialect="field")
FIXED = ["--tp-size", "8", "--attention-dp-size", "1", "--attention-backend", "triton"]


class MemoryRunner:
    """Answers by a truth; keeps what was launched."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.ui = SilentUi()
        self.trials: list[Trial] = []

    def run(self, trial: Trial, attempt: int) -> Result:
        self.trials.append(trial)
        assert trial.candidate is not None
        cause = self.truth.fails(trial.candidate)
        rate = self.truth.rate(trial.candidate, 1000.0 + trial.candidate.budget)
        return Result(
            ok=cause is None, cause=cause or "ok", tok_per_s=None if cause else rate, took_s=540.0, observations=("o",)
        )


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> MemoryRunner:
    found = MemoryRunner(Truth())

    def make(given: dict[str, Any], subject: object, bench: object) -> MemoryRunner:
        given["folder"].mkdir(exist_ok=True)
        return found

    monkeypatch.setattr("planner.cli.sweep.runner_of", make)
    monkeypatch.setattr("planner.cli.probe.runner_of", make)
    return found


def keeps_every_limit(trial: Trial) -> bool:
    subject = load_subject(ASKED)
    assert subject.drafter is not None
    context = LimitContext(subject.hardware, subject.model, subject.workload, block_size=subject.drafter.block_size)
    assert trial.candidate is not None
    table = CandidateTable.of(trial.candidate)
    return all(evaluate_limit(limit, table, context).safe.all() for limit in load_limits())


@pytest.mark.parametrize("source", ["options", "plan"])
def test_a_sweep_starts_with_the_plan_and_keeps_every_limit(source: str, runner: MemoryRunner, tmp_path: Path) -> None:
    pins = Pins.read({"tp_size": 8, "attention_dp_size": 1, "attention_backend": "triton"})
    plan = make_plan(replace(ASKED, pins=pins))
    argv = ["--hw", "b300", "--target-c", "64", "--dialect", "field", *FIXED]
    if source == "plan":
        (tmp_path / "plan.json").write_text(json.dumps(plan_to_dict(plan)))
        argv = [str(tmp_path / "plan.json")]
    argv += ["--dir", str(tmp_path / "d"), "--max-launches", "6", "--most", "40", "--format", "json"]
    done = CliRunner().invoke(sweep, argv, catch_exceptions=False)
    report = json.loads(done.output)
    assert plan.launch is not None
    assert runner.trials[0].argv == plan.launch.argv
    assert all(keeps_every_limit(trial) for trial in runner.trials)
    assert report["cost"] == {"n_launches": 6, "minutes": 54.0, "gpu_hours": pytest.approx(7.2)}
    for before, after in zip(runner.trials, runner.trials[1:], strict=False):
        assert any(len(after.changed_from(past)) <= 1 for past in runner.trials[: runner.trials.index(before) + 1])


def test_a_plan_of_several_servers_is_swept_one_server_at_a_time(runner: MemoryRunner, tmp_path: Path) -> None:
    plan = make_plan(ASKED)
    assert plan.effective is not None
    assert plan.effective.replicas > 1
    argv = ["--hw", "b300", "--target-c", "64", "--dialect", "field", "--dir", str(tmp_path / "d")]
    done = CliRunner().invoke(sweep, [*argv, "--max-launches", "2", "--most", "20"], catch_exceptions=False)
    assert f"the nearest to the plan of {plan.effective.replicas} servers" in done.output
    assert all(trial.candidate and trial.candidate.replicas == 1 for trial in runner.trials)


def test_a_budget_of_minutes_is_kept_and_told(runner: MemoryRunner, tmp_path: Path) -> None:
    argv = ["--hw", "b300", "--target-c", "64", "--dialect", "field", "--dir", str(tmp_path / "d"), "--most", "40"]
    done = CliRunner().invoke(sweep, [*argv, "--budget-minutes", "20"], catch_exceptions=False)
    assert done.exit_code == 0
    assert len(runner.trials) == 2
    assert "took 2 launches, 18.0 minutes, 2.40 GPU-hours" in done.output
    assert "too few for another launch" in done.output


def test_a_sweep_in_which_nothing_runs_says_so(runner: MemoryRunner, tmp_path: Path) -> None:
    runner.truth = Truth(row_limit=0)
    argv = ["--hw", "b300", "--target-c", "64", "--dialect", "field", "--dir", str(tmp_path / "d"), "--most", "5"]
    done = CliRunner().invoke(sweep, argv, catch_exceptions=False)
    assert done.exit_code == 1
    assert done.output.startswith("NOTHING RAN WELL")
    assert "cublas-exec-failed" in done.output


def test_a_probe_narrows_the_row_limit(runner: MemoryRunner, tmp_path: Path) -> None:
    runner.truth = Truth(row_limit=1500)
    argv = ["B300-MLA-VERIFY-ROWS", "--hw", "b300", "--target-c", "64", "--dialect", "field", "--speculation", "tree"]
    argv += ["--budget", "8", *FIXED, "--dir", str(tmp_path / "d")]
    done = CliRunner().invoke(probe, [*argv, "--format", "json"], catch_exceptions=False)
    report = json.loads(done.output)
    assert done.exit_code == 0
    assert 1152 < report["probe"]["known_good"] <= 1500 < report["probe"]["known_bad"] < 2176
    assert report["cost"]["n_launches"] == len(runner.trials) <= 16
    n_launches = len(runner.trials)
    text = CliRunner().invoke(probe, argv, catch_exceptions=False).output
    assert len(runner.trials) == n_launches, "a finished probe was run again"
    assert "before: good 1152, bad 2176" in text


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["B300-MLA-VERIFY-ROW"], r"did you mean B300-MLA-VERIFY-ROWS"),
        (["NVLS-NEEDS-NVLINK"], "no interval"),
        (["B300-EP-EAGER", "--cuda-graph", "off"], r"no known bad value.*--bad"),
        (["B300-EP-EAGER", "--cuda-graph", "off", "--bad", "0.5"], r"--bad: must lie above 1"),
    ],
)
def test_probe_bad_input(argv: list[str], text: str, tmp_path: Path) -> None:
    options = ["--hw", "b300", "--target-c", "64", "--dialect", "field", "--dir", str(tmp_path / "d")]
    with pytest.raises(InputError, match=text):
        CliRunner().invoke(probe, [*argv, *options], catch_exceptions=False)
    assert not (tmp_path / "d").exists()
