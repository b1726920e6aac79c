"""Time to first token in a plan: an estimate where prefill has tables, a ceiling where the formula holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from planner.domain import PlanStatus
from planner.errors import InputError
from planner.estimate.throughput import first_token_s, time_to_first_token
from planner.search.planning import make_plan
from planner.search.request import Question, WorkloadInput


def asked(hw: str = "b300", *, drafter: str = "auto", **load: object):
    return make_plan(Question(hw=hw, workload=WorkloadInput(**load), drafter=drafter))


def test_a_plan_says_when_the_first_token_comes():
    first = asked(target_c=64).predicted.ttft_s
    assert first.low < first.value < first.high
    assert 0.1 < first.value < 1.0
    assert not first.extrapolated


def test_more_prompt_and_more_clients_come_later():
    base = asked(target_c=16).predicted.ttft_s.value
    assert asked(target_c=16, context=4096).predicted.ttft_s.value > base
    assert asked(target_c=64).predicted.ttft_s.value > base


def test_a_ceiling_that_is_met_leaves_the_plan_optimal():
    plan = asked(target_c=64, max_ttft_ms=2000)
    assert plan.status is PlanStatus.OPTIMAL
    assert plan.predicted.ttft_s.value <= 2.0


def test_a_ceiling_binds_before_it_is_infeasible():
    """The fastest plan at C = 64 runs two replicas; one of eight GPUs computes a prompt sooner."""
    free = asked(target_c=64)
    ceiling_ms = 0.97e3 * free.predicted.ttft_s.value
    bound = asked(target_c=64, max_ttft_ms=ceiling_ms)
    assert bound.status is PlanStatus.OPTIMAL
    assert bound.predicted.ttft_s.value <= ceiling_ms / 1e3
    assert bound.predicted.tok_per_s.value <= free.predicted.tok_per_s.value


def test_a_ceiling_below_every_prefill_is_infeasible_and_named():
    plan = asked(target_c=64, max_ttft_ms=20)
    assert plan.status is PlanStatus.INFEASIBLE
    assert "mean TTFT at most 20 ms" in plan.conflict.text
    assert "REQUEST-MAX-TTFT" in plan.conflict.ids


@pytest.mark.parametrize("load", [{"target_c": 64, "context": 32000}, {"target_c": 1024, "context": 256}])
def test_outside_what_was_measured_the_ceiling_stays_unknown(load):
    plan = asked(**load, max_ttft_ms=5000)
    assert plan.status is PlanStatus.UNKNOWN
    assert "TTFT at most 5000 ms" in plan.status_note
    assert plan.predicted.ttft_s is None or plan.predicted.ttft_s.extrapolated


def test_on_pcie_without_a_measured_all_reduce_there_is_no_estimate():
    plan = asked("rtx_pro_6000", target_c=8, max_ttft_ms=5000, drafter="none")
    assert plan.predicted.ttft_s is None
    assert plan.status is PlanStatus.UNKNOWN


def test_waiting_for_a_place_counts():
    waiting = asked(target_c=96, allow_queue=True, max_ttft_ms=60_000)
    pinned = make_plan(
        Question(
            hw="b300",
            workload=WorkloadInput(target_c=96, allow_queue=True),
            pins=_pins(max_running_requests=32, tp_size=8),
        )
    )
    assert waiting.status is PlanStatus.OPTIMAL
    if pinned.predicted is not None and pinned.predicted.wait_s > 0:
        assert pinned.predicted.ttft_s.value > pinned.predicted.wait_s


def _pins(**values: object):
    from planner.search.space import Pins

    return Pins.read(values)


def test_columns_and_the_estimate_agree():
    columns = first_token_s([0.05, 0.2], step_s=0.01, wait_s=[0.0, 1.0], prefill_busy_frac=0.1, burst_requests=[0, 3])
    one = time_to_first_token(0.2, step_s=0.01, wait_s=1.0, prefill_busy_frac=0.1, burst_requests=3)
    assert columns[1] == pytest.approx(one.value)
    wide = time_to_first_token(0.2, step_s=0.01, wait_s=1.0, prefill_busy_frac=0.1, burst_requests=3, extrapolated=True)
    assert wide.extrapolated
    assert np.log(wide.high / wide.low) == pytest.approx(2 * np.log(one.high / one.low))


def test_a_busy_share_of_one_is_refused():
    with pytest.raises(InputError, match="prefill_busy_frac"):
        first_token_s(0.1, step_s=0.01, prefill_busy_frac=[0.2, 1.0])


def test_the_text_shows_it_where_a_ceiling_was_asked_for(run):
    shown = run("--hw", "b300", "--target-c", "64", "--max-ttft-ms", "2000")
    assert re.search(r"TTFT \d+ ms \[\d+-\d+\]", shown.out)
    body = json.loads(run("--hw", "b300", "--target-c", "64", "--format", "json").out)
    assert body["predicted"]["ttft_s"]["provenance"] == "derived"


def test_the_page_states_the_range_that_the_code_checks():
    text = (Path(__file__).parents[2] / "docs" / "throughput.md").read_text(encoding="utf-8")
    assert "512 to 16384" in text
    assert "128 running requests" in text
