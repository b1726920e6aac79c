"""While requests wait, the engine fills every seat: the number said to run is the number that the launch admits."""

from __future__ import annotations

import pytest

import planner

CASES = [
    # target_c, fixed max_running_requests, ceiling on TPOT in ms
    pytest.param(64, None, 4.5, id="a ceiling that two requests meet"),
    pytest.param(64, None, 8.0, id="a ceiling that sixteen requests meet"),
    pytest.param(64, 8, None, id="fixed seats, once infeasible"),
    pytest.param(512, 12, None, id="fixed seats that are no power of two"),
]


@pytest.mark.parametrize(("target_c", "seats", "max_tpot_ms"), CASES)
def test_as_many_run_as_the_launch_admits(target_c: int, seats: int | None, max_tpot_ms: float | None) -> None:
    pins = {} if seats is None else {"max_running_requests": seats}
    plan = planner.plan(hw="b300", target_c=target_c, allow_queue=True, max_tpot_ms=max_tpot_ms, **pins)
    assert plan.status == "optimal"
    assert plan.effective is not None
    assert plan.predicted is not None
    chosen = plan.effective
    if seats is not None:
        assert chosen.max_running_requests == seats
    admitted = chosen.max_running_requests // chosen.attention_dp_size * chosen.attention_dp_size * chosen.replicas
    assert admitted < target_c
    assert plan.predicted.tok_per_s.value / plan.predicted.tok_per_s_per_user.value == pytest.approx(admitted)


def test_a_prediction_of_the_same_launch_agrees() -> None:
    """The plan's ceiling holds for the launch it gives, not for fewer requests than would run."""
    plan = planner.plan(hw="b300", target_c=64, allow_queue=True, max_tpot_ms=4.5)
    assert plan.effective is not None
    assert plan.launch is not None
    assert plan.effective.replicas == 1
    prediction = planner.predict("b300", launch=plan.launch, workload={"target_c": 64})
    assert prediction.predicted.tpot_s.value <= 4.5e-3


def test_without_leave_to_queue_fixed_seats_are_infeasible() -> None:
    plan = planner.plan(hw="b300", target_c=64, max_running_requests=8)
    assert plan.status == "infeasible"
    assert plan.conflict is not None
    assert "REQUEST-TARGET-C" in plan.conflict.ids
