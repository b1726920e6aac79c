"""Concurrency, closed and open loops, latencies; the queues are checked against a discrete-event simulation."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import DomainError, InputError
from planner.estimate.throughput import (
    closed_loop,
    effective_concurrency,
    inter_token_latency,
    open_loop,
    steps_per_request,
    time_to_first_token,
    tpot_s,
)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"concurrency": 64, "max_running_requests": 128, "kv_capacity_tok": 1e6, "kv_needed_tok": 2048}, 64),
        ({"concurrency": 64, "max_running_requests": 32, "kv_capacity_tok": 1e6, "kv_needed_tok": 2048}, 32),
        ({"concurrency": 64, "max_running_requests": 128, "kv_capacity_tok": 2e4, "kv_needed_tok": 2048}, 9),
        ({"concurrency": 64, "max_running_requests": 128, "kv_capacity_tok": 2000, "kv_needed_tok": 2048}, 0),
        (
            {
                "concurrency": 64,
                "max_running_requests": 100,
                "kv_capacity_tok": 2e4,
                "kv_needed_tok": 2048,
                "attention_dp_size": 8,
            },
            64,
        ),
        (
            {
                "concurrency": 200,
                "max_running_requests": 100,
                "kv_capacity_tok": 1e6,
                "kv_needed_tok": 2048,
                "attention_dp_size": 8,
                "replicas": 2,
            },
            192,
        ),
    ],
)
def test_requests_that_can_run(asked, expected):
    assert effective_concurrency(**asked) == expected


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 512), st.floats(1, 1e7), st.floats(1, 1e5))
def test_more_kv_never_lowers_concurrency(capacity, more, limit, clients, needed):
    low, high = effective_concurrency(
        clients, max_running_requests=limit, kv_capacity_tok=[capacity, capacity + more], kv_needed_tok=needed
    )
    assert low <= high <= clients


def test_a_request_takes_at_least_one_step():
    assert steps_per_request(1024, 4) == 256
    assert steps_per_request(2, 8) == 1
    assert tpot_s(0.08, 4.0) == pytest.approx(0.02)


def test_closed_loop_below_the_limit_has_no_wait():
    loop = closed_loop(64, 64, step_s=0.08, accept_len=4.0, output_tok=1000)
    assert loop.tok_per_s == pytest.approx(3200)
    assert loop.wait_s == pytest.approx(0)
    assert loop.request_s == pytest.approx(20)


def test_closed_loop_above_the_limit_is_flat_and_waits_by_littles_law():
    loop = closed_loop([64, 128, 256], 64, step_s=0.08, accept_len=4.0, output_tok=1000)
    np.testing.assert_allclose(loop.tok_per_s, 3200)
    np.testing.assert_allclose(loop.wait_s, [0, 20, 60])
    np.testing.assert_allclose(loop.request_s * loop.tok_per_s / 1000, [64, 128, 256])


@given(st.integers(1, 500), st.floats(1e-3, 1.0), st.floats(1, 8))
def test_throughput_never_exceeds_requests_times_accept_over_step(clients, step, accept):
    loop = closed_loop(clients, clients, step_s=step, accept_len=accept, output_tok=500)
    assert loop.tok_per_s <= clients * accept / step * (1 + 1e-12)


def test_a_loop_in_which_nothing_runs_is_refused():
    with pytest.raises(DomainError, match="no request can run"):
        closed_loop(8, 0, step_s=0.08, accept_len=4.0, output_tok=1000)


def simulate(limit, step_of, accept_len, lengths, *, arrivals=None, clients=None):
    """Steps of a continuous batch: each runs step_of(n) seconds and gives accept_len tokens to each of n requests."""
    now, queue, running, done, area_running, area_waiting = 0.0, [], [], [], 0.0, 0.0
    lengths = iter(lengths)
    pending = list(arrivals or [])
    heapq.heapify(pending)
    if clients:
        pending = [0.0] * clients
    while pending or queue or running:
        while pending and pending[0] <= now:
            try:
                queue.append([heapq.heappop(pending), next(lengths)])
            except StopIteration:
                pending = []
                break
        while queue and len(running) < limit:
            running.append([*queue.pop(0), now])
        if not running:
            if not pending:
                break
            now = pending[0]
            continue
        step = step_of(len(running))
        area_running += step * len(running)
        area_waiting += step * len(queue)
        now += step
        for request in running:
            request[1] -= accept_len
        for request in [r for r in running if r[1] <= 0]:
            running.remove(request)
            done.append((request[2] - request[0], now - request[2]))
            if clients:
                heapq.heappush(pending, now)
    waits, services = np.array(done).T
    return waits.mean(), services.mean(), area_running / now, area_waiting / now, len(done) / now


def step_of(n):
    return 0.010 + 0.0008 * n


def test_closed_loop_against_the_simulation():
    """40 clients, 16 places: wait and throughput of the formula within 2 % of 4000 simulated requests."""
    waits, _, running, _, rate = simulate(16, step_of, 4, [400] * 4000, clients=40)
    loop = closed_loop(40, 16, step_s=step_of(16), accept_len=4.0, output_tok=400)
    assert running == pytest.approx(16, rel=0.02)
    assert rate * 400 == pytest.approx(float(loop.tok_per_s), rel=0.02)
    assert waits == pytest.approx(float(loop.wait_s), rel=0.02)


@pytest.mark.parametrize("share", [0.4, 0.7, 0.85])
def test_open_loop_against_the_simulation(share):
    """Poisson arrivals, exponential lengths: numbers running and waiting within the noise of 20000 requests."""
    rng = np.random.default_rng(11)
    limit, accept_len, mean = 16, 4.0, 400.0
    steps = step_of(np.arange(1, limit + 1))
    rate = share * limit / (mean / accept_len * steps[-1])
    arrivals = np.cumsum(rng.exponential(1 / rate, 20000)).tolist()
    lengths = np.maximum(rng.exponential(mean, 20000), 1e-9)
    loop = open_loop(rate, step_s=steps, accept_len=accept_len, output_tok=mean)
    _, services, running, waiting, _ = simulate(limit, step_of, accept_len, lengths, arrivals=arrivals)
    assert running == pytest.approx(loop.n_running, rel=0.06)
    assert services == pytest.approx(loop.service_s, rel=0.06)
    assert waiting == pytest.approx(loop.n_waiting, abs=max(0.25 * loop.n_waiting, 0.1))


def test_open_loop_of_even_lengths_waits_less_than_the_formula_says():
    rng = np.random.default_rng(5)
    limit, mean = 8, 400.0
    steps = step_of(np.arange(1, limit + 1))
    rate = 0.85 * limit / (mean / 4 * steps[-1])
    arrivals = np.cumsum(rng.exponential(1 / rate, 12000)).tolist()
    waits, *_ = simulate(limit, step_of, 4, [mean] * 12000, arrivals=arrivals)
    loop = open_loop(rate, step_s=steps, accept_len=4.0, output_tok=mean)
    assert 0 < waits < loop.wait_s


@given(st.floats(0.05, 0.9), st.floats(0.01, 0.09))
def test_more_arrivals_wait_longer(share, more):
    steps = step_of(np.arange(1, 17))
    capacity = 16 / (100 * steps[-1])
    quiet, busy = (open_loop(s * capacity, step_s=steps, accept_len=4, output_tok=400) for s in (share, share + more))
    assert quiet.wait_s <= busy.wait_s
    assert quiet.n_running <= busy.n_running
    assert quiet.tpot_s <= busy.tpot_s * (1 + 1e-9)
    assert quiet.utilisation_frac == pytest.approx(share)


def test_an_open_loop_that_cannot_keep_up_has_no_steady_state():
    with pytest.raises(DomainError, match="the queue grows without end"):
        open_loop(100.0, step_s=[0.1, 0.1], accept_len=4, output_tok=400)


@pytest.mark.parametrize(("rate", "steps"), [(0, [0.1]), (float("nan"), [0.1]), (1, []), (1, [0.1, -1])])
def test_open_loop_refuses_what_is_no_rate_or_step(rate, steps):
    with pytest.raises(InputError):
        open_loop(rate, step_s=steps, accept_len=4, output_tok=400)


def test_gaps_between_tokens_average_to_tpot_and_stall_at_prefills():
    gaps = inter_token_latency(0.08, 0.013, accept_len=4.0, n_running=64, output_tok=1024)
    assert gaps.mean_s == pytest.approx(0.02)
    assert gaps.burst_gap_s == pytest.approx(0.067)
    assert gaps.stall_frac == pytest.approx(0.25)
    mean = gaps.stall_frac * gaps.stall_s + (1 - gaps.stall_frac) * gaps.burst_gap_s
    assert mean == pytest.approx(0.08)


def test_gaps_without_prefill_do_not_stall():
    gaps = inter_token_latency(0.08, 0.0, accept_len=4.0, n_running=64, output_tok=1024)
    assert gaps.stall_frac == 0
    assert gaps.stall_s == gaps.burst_gap_s == pytest.approx(0.08)


def test_time_to_first_token_holds_the_measured_one():
    """InferenceX, B200 INT4 TP8, 1K in and out, C = 4: 134.7 ms with a prefill of 68 ms (table) x 0.85 (fit)."""
    estimate = time_to_first_token(0.058, step_s=0.010, prefill_busy_frac=0.02, burst_requests=0.2)
    assert estimate.low < 0.1347 < estimate.high
    later = time_to_first_token(0.058, step_s=0.010, wait_s=3.0)
    assert later.value > estimate.value + 2.9


@pytest.mark.parametrize("busy", [-0.1, 1.0, float("nan")])
def test_time_to_first_token_refuses_a_share_that_is_none(busy):
    with pytest.raises(InputError, match="prefill_busy_frac"):
        time_to_first_token(0.05, step_s=0.01, prefill_busy_frac=busy)
