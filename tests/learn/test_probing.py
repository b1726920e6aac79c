"""A probe brackets a hidden threshold in about log2 steps and never takes a flaky start for a limit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.domain.table import CandidateTable
from planner.errors import InputError
from planner.learn.planned import Planned, plan_base
from planner.learn.probe import CONFIRM, CONFIRM_END, RESOLUTION_FRAC, probe
from planner.learn.probing import plan_probe
from planner.learn.trial import Result
from planner.limits import evaluate_limit
from planner.search.request import Question, WorkloadInput
from planner.search.space import Pins

ROWS = [float(9 * requests) for requests in range(129, 242)]


def engine(threshold: float, *, flaky_frac: float, seed: int) -> object:
    rng = np.random.default_rng(seed)

    def run(value: float) -> Result:
        if rng.random() < flaky_frac:
            return Result(ok=False, cause="exited")
        ok = value <= threshold
        return Result(ok=ok, cause="ok" if ok else "cublas-exec-failed")

    return run


@settings(max_examples=200, deadline=None)
@given(threshold=st.floats(1152, 2175), flaky=st.sampled_from((0.0, 0.1, 0.2)), seed=st.integers(0, 400))
def test_threshold_is_bracketed(threshold: float, flaky: float, seed: int) -> None:
    found = probe(1152, 2176, ROWS, engine(threshold, flaky_frac=flaky, seed=seed))  # type: ignore[arg-type]
    assert found.known_bad is not None
    assert found.known_good <= threshold < found.known_bad
    inside = [value for value in ROWS if found.known_good < value < found.known_bad]
    assert not inside or found.known_bad / found.known_good <= 1 + RESOLUTION_FRAC + 1e-9
    n_steps = len({step.value for step in found.steps})
    assert n_steps <= math.ceil(math.log2(math.log(2176 / 1152) / math.log1p(RESOLUTION_FRAC))) + 1


def test_flaky_starts_are_never_a_limit() -> None:
    """Three hundred probes of an engine without any limit, at one flaky start in five."""
    called = [
        found
        for seed in range(300)
        if (found := probe(1152, 2176, ROWS, engine(1e9, flaky_frac=0.2, seed=seed))).known_bad != 2176  # type: ignore[arg-type]
    ]
    assert not called


def test_lower_bounds_are_probed_downwards() -> None:
    run = lambda value: Result(ok=value >= 40, cause="ok" if value >= 40 else "oom-startup")  # noqa: E731
    found = probe(100, 10, [float(v) for v in range(11, 100)], run)
    assert found.known_bad is not None
    assert found.known_bad < 40 <= found.known_good


@given(budget=st.integers(1, 12))
def test_a_budget_of_launches_is_kept(budget: int) -> None:
    found = probe(1152, 2176, ROWS, engine(1500, flaky_frac=0.0, seed=1), max_launches=budget)  # type: ignore[arg-type]
    assert found.n_launches <= budget
    assert found.known_good <= 1500
    assert found.known_bad is not None
    if found.known_bad < 2176:
        failures = sum(len(step.results) for step in found.steps if step.value == found.known_bad)
        assert failures >= CONFIRM + CONFIRM_END


def test_nothing_between_the_ends() -> None:
    with pytest.raises(InputError, match="as narrow as the settings allow"):
        probe(9, 10, [9.0, 10.0], lambda value: Result(ok=True, cause="ok"))


# -- launches of a limit ---------------------------------------------------------------------------------------------
def planned(target_c: int = 64, lift: dict[str, str] | None = None, **pins: object) -> Planned:
    asked = Question(
        hw="b300", workload=WorkloadInput(target_c=target_c), dialect="field", pins=Pins.read(pins), lift=lift or {}
    )
    return plan_base(asked)


TREE = {"speculation": "tree", "attention_backend": "triton", "tp_size": 8, "attention_dp_size": 1, "budget": 8}


def test_rows_are_moved_by_running_requests_alone() -> None:
    base = planned(**TREE)
    plan = plan_probe(base, base.limit("B300-MLA-VERIFY-ROWS"))
    assert min(plan.trials) > 1152
    assert max(plan.trials) < 2176
    assert plan.trials[1296.0].changed_from(base.trial(base.base)) == ("max_running_requests",)
    for value, trial in plan.trials.items():
        assert trial.candidate is not None
        assert trial.candidate.verify_rows_per_rank == value


@pytest.mark.parametrize("target_c", [8, 128])
def test_every_other_limit_is_kept(target_c: int) -> None:
    """At 128 requests a q_len of 12 would break the row limit: fewer requests, in all launches alike."""
    base = planned(target_c, **(TREE | {"budget": 8}))
    limit = base.limit("B300-GRAPH-Q-LEN")
    plan = plan_probe(base, limit)
    assert list(plan.trials) == [10.0, 11.0, 12.0]
    requests = {trial.candidate.max_running_requests for trial in plan.trials.values() if trial.candidate}
    assert len(requests) == 1
    for trial in plan.trials.values():
        assert trial.candidate is not None
        for other in base.subject.limits:
            if other.id != limit.id:
                assert evaluate_limit(other, CandidateTable.of(trial.candidate), base.context).safe.all(), other.id


def test_a_probe_that_breaks_another_limit_is_refused_unless_lifted() -> None:
    """Rows cannot be raised by requests while a limit of one's own holds the requests."""
    from planner.domain import Limit

    base = planned(**TREE)
    own = Limit.model_validate(
        {
            "id": "OWN", "title": "own", "shape": "at_most", "quantity": "max_running_requests", "known_good": 128,
            "status": "established", "consequence": "crash", "seen_on": "x", "evidence": [{"ref": "r", "outcome": "o"}],
        }
    )  # fmt: skip
    from dataclasses import replace

    held = replace(base, subject=replace(base.subject, limits=(*base.subject.limits, own)))
    with pytest.raises(InputError, match=r"would break OWN.*--lift OWN"):
        plan_probe(held, held.limit("B300-MLA-VERIFY-ROWS"))
    lifted = replace(held, question=replace(held.question, lift={"OWN": "measured"}))
    assert plan_probe(lifted, lifted.limit("B300-MLA-VERIFY-ROWS")).trials


def test_limits_that_cannot_be_probed_say_why() -> None:
    base = planned(**TREE)
    with pytest.raises(InputError, match=r"unknown limit 'B300-GRAPH-QLEN'.*B300-GRAPH-Q-LEN"):
        base.limit("B300-GRAPH-QLEN")
    with pytest.raises(InputError, match="no interval"):
        plan_probe(base, base.limit("NVLS-NEEDS-NVLINK"))
    with pytest.raises(InputError, match="no single setting"):
        plan_probe(base, base.limit("ACCEPT-LEN-AT-MOST-BLOCK"))
    with pytest.raises(InputError, match="does not speak"):
        plan_probe(base, base.limit("B300-EP-EAGER"), bad=8)
