"""From the seconds of a step to tokens per second, latency and queueing. Pure functions on arrays.

Terms: a request commits ``accept_len`` tokens in each step, so that it takes ``output_tok / accept_len`` steps; TPOT is
``step_s / accept_len``; tokens arrive in bursts of ``accept_len``, one burst a step. In a closed loop of C clients with
zero think time C_eff of them run; the others wait their turn (Little's law gives for how long). In an open loop
requests arrive at random (Poisson) and the number that runs follows a birth-death chain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.domain import Estimate, Provenance
from planner.errors import DomainError, InputError

__all__ = [
    "ClosedLoop",
    "InterTokenLatency",
    "OpenLoop",
    "closed_loop",
    "effective_concurrency",
    "first_token_s",
    "inter_token_latency",
    "open_loop",
    "steps_per_request",
    "time_to_first_token",
    "tpot_s",
]

Floats = NDArray[np.float64]

_TTFT_OVERHEAD_S = 0.045
"""HTTP, tokenising, scheduling and the first sampling: InferenceX rows at C = 4 stand 20 to 60 ms above their prefill
(EP4 rows, 130 ms)."""
_TTFT_SD_LOG = 0.30
"""Error of :func:`time_to_first_token` on the InferenceX rows, as a standard deviation of the log."""
_Z90 = 1.6448536269514722


def steps_per_request(output_tok: ArrayLike, accept_len: ArrayLike) -> Floats:
    """Steps that a request takes: ``output_tok / accept_len``, at least 1. Shapes broadcast."""
    return np.asarray(np.maximum(np.asarray(output_tok, float) / np.asarray(accept_len, float), 1.0))


def tpot_s(step_s: ArrayLike, accept_len: ArrayLike) -> Floats:
    """Seconds for each output token of one request: ``step_s / accept_len``."""
    return np.asarray(np.asarray(step_s, float) / np.asarray(accept_len, float))


def effective_concurrency(
    concurrency: ArrayLike,
    *,
    max_running_requests: ArrayLike,
    kv_capacity_tok: ArrayLike,
    kv_needed_tok: ArrayLike,
    attention_dp_size: ArrayLike = 1,
    replicas: ArrayLike = 1,
) -> Floats:
    """C_eff: requests that can run at a time on all replicas. Shapes broadcast.

    Args:
        concurrency: clients.
        max_running_requests: of one server; an attention-DP rank takes ``max_running_requests // attention_dp_size``.
        kv_capacity_tok: tokens that the KV pool of one attention-DP rank holds.
        kv_needed_tok: tokens of one request at its end; a request whose tokens do not fit one rank does not run.
        attention_dp_size: attention-DP ranks, each with its own pool.
        replicas: independent servers.
    """
    ranks = np.asarray(attention_dp_size, float)
    by_pool = np.floor(np.asarray(kv_capacity_tok, float) / np.maximum(np.asarray(kv_needed_tok, float), 1.0))
    by_limit = np.floor(np.asarray(max_running_requests, float) / ranks)
    limit = np.asarray(replicas, float) * ranks * np.minimum(by_pool, by_limit)
    return np.asarray(np.minimum(np.asarray(concurrency, float), limit))


@record(eq=False)
class ClosedLoop:
    """Steady state of a closed loop; arrays (n,)."""

    n_running: Floats
    tok_per_s: Floats
    tpot_s: Floats
    request_s: Floats
    """Mean time from sending a request to its last token, waiting included."""
    wait_s: Floats
    """Mean time before a request runs (0 where all of them run)."""


def closed_loop(
    concurrency: ArrayLike, n_running: ArrayLike, *, step_s: ArrayLike, accept_len: ArrayLike, output_tok: ArrayLike
) -> ClosedLoop:
    """Closed loop with zero think time of which ``n_running`` requests run (from :func:`effective_concurrency`).

    Above the limit throughput is flat and the surplus waits: request_s = C x output_tok / X (Little), wait_s is
    request_s minus service. ``step_s`` is the step at ``n_running``, with its share of prefills.

    Raises:
        DomainError: a row where no request can run.
    """
    clients, running = np.asarray(concurrency, float), np.asarray(n_running, float)
    if np.any(running <= 0):
        raise DomainError("no request can run: the KV pool or max_running_requests admits none")
    throughput = running * np.asarray(accept_len, float) / np.asarray(step_s, float)
    service = steps_per_request(output_tok, accept_len) * np.asarray(step_s, float)
    total = clients * np.asarray(output_tok, float) / throughput
    return ClosedLoop(
        n_running=running,
        tok_per_s=throughput,
        tpot_s=tpot_s(step_s, accept_len),
        request_s=np.maximum(total, service),
        wait_s=np.maximum(total - service, 0.0),
    )


@record()
class OpenLoop:
    """Steady state under Poisson arrivals."""

    utilisation_frac: float
    """Offered requests over the most that can be served."""
    n_running: float
    n_waiting: float
    wait_s: float
    """Mean time in the queue."""
    service_s: float
    """Mean time running."""
    tpot_s: float
    tok_per_s: float
    p_wait_frac: float
    """Part of the requests that find no free place."""


def open_loop(arrival_req_per_s: float, *, step_s: ArrayLike, accept_len: float, output_tok: float) -> OpenLoop:
    """Steady state of one server under Poisson arrivals, requests above the limit queueing in order.

    The number in the system is a birth-death chain: with n running, requests end at n / (steps x step_s(n)) a second.
    While none waits this is a processor-sharing queue, whose mean numbers hold for any distribution of output lengths;
    the queue above the limit is exact for exponential lengths and pessimistic for even ones (checked against a
    discrete-event simulation in tests/throughput).

    Args:
        arrival_req_per_s: requests a second.
        step_s: seconds of a step with 1, 2, ... N requests running, shape (N,); N is the limit (C_eff).
        accept_len: tokens of a request in each step.
        output_tok: mean output tokens of a request.

    Raises:
        InputError: a rate or a step that is not above zero.
        DomainError: more arrives than can be served: no steady state.
    """
    steps = np.atleast_1d(np.asarray(step_s, float))
    if not np.isfinite(arrival_req_per_s) or arrival_req_per_s <= 0:
        raise InputError(f"arrival_req_per_s must be above zero, got {arrival_req_per_s}")
    if steps.size == 0 or not np.all(np.isfinite(steps)) or np.any(steps <= 0):
        raise InputError("step_s must hold one positive number of seconds for each number of running requests")
    n_steps = float(steps_per_request(output_tok, accept_len))
    running = np.arange(1, steps.size + 1)
    rate = running / (n_steps * steps)
    utilisation = arrival_req_per_s / rate[-1]
    if utilisation >= 1.0:
        raise DomainError(
            f"{arrival_req_per_s:.3g} requests/s arrive and {rate[-1]:.3g} can be served: the queue grows without end",
            "offer less, raise max_running_requests, or add a replica",
        )
    weight = np.concatenate([[0.0], np.cumsum(np.log(arrival_req_per_s / rate))])
    probability = np.exp(weight - weight.max())
    # Above the limit the chain is geometric: its sums are closed.
    tail = probability[-1] * utilisation / (1.0 - utilisation)
    total = probability.sum() + tail
    probability, tail = probability / total, tail / total
    n_running = float(np.arange(steps.size + 1) @ probability + steps.size * tail)
    n_waiting = float(probability[-1] * utilisation / (1.0 - utilisation) ** 2)
    service = n_running / arrival_req_per_s
    return OpenLoop(
        utilisation_frac=float(utilisation),
        n_running=n_running,
        n_waiting=n_waiting,
        wait_s=n_waiting / arrival_req_per_s,
        service_s=service,
        tpot_s=service / output_tok,
        tok_per_s=arrival_req_per_s * output_tok,
        p_wait_frac=float(probability[-1] + tail),
    )


@record(eq=False)
class InterTokenLatency:
    """Gaps between the tokens of one request; arrays (n,)."""

    mean_s: Floats
    """Mean over tokens: TPOT."""
    burst_gap_s: Floats
    """Gap between two bursts of tokens in a step without a prefill."""
    stall_s: Floats
    """Gap in a step in which another request's prompt is computed."""
    stall_frac: Floats
    """Part of the steps that stall."""


def inter_token_latency(
    step_s: ArrayLike,
    prefill_part_s: ArrayLike,
    *,
    accept_len: ArrayLike,
    n_running: ArrayLike,
    output_tok: ArrayLike,
) -> InterTokenLatency:
    """Gaps between tokens, given a step and the part of it that prefills add on average.

    A request ends every ``output_tok / (n_running x accept_len)`` steps and the next one's prompt is computed then: the
    mean part ``prefill_part_s`` comes whole in that share of the steps and not at all in the others.
    """
    step, part = np.asarray(step_s, float), np.asarray(prefill_part_s, float)
    share = np.asarray(n_running, float) * np.asarray(accept_len, float) / np.asarray(output_tok, float)
    stall_frac = np.where(part > 0, np.minimum(share, 1.0), 0.0)
    plain = step - part
    stall = plain + np.where(stall_frac > 0, part / np.maximum(stall_frac, 1e-12), 0.0)
    return InterTokenLatency(
        mean_s=tpot_s(step, accept_len), burst_gap_s=plain, stall_s=stall, stall_frac=np.asarray(stall_frac)
    )


def first_token_s(
    prefill_s: ArrayLike,
    *,
    step_s: ArrayLike,
    wait_s: ArrayLike = 0.0,
    prefill_busy_frac: ArrayLike = 0.0,
    burst_requests: ArrayLike = 0.0,
) -> Floats:
    """Time to first token without its interval (:func:`time_to_first_token`). Shapes broadcast.

    Raises:
        InputError: a ``prefill_busy_frac`` below 0 or not below 1.
    """
    busy = np.asarray(prefill_busy_frac, float)
    if not np.all((busy >= 0.0) & (busy < 1.0)):
        raise InputError(f"prefill_busy_frac must be at least 0 and below 1, got {prefill_busy_frac!r}")
    ahead = 0.5 * busy / (1.0 - busy) + np.asarray(burst_requests, float)
    rest = np.asarray(wait_s, float) + np.asarray(step_s, float) / 2
    return np.asarray(_TTFT_OVERHEAD_S + rest + np.asarray(prefill_s, float) * (1.0 + ahead))


def time_to_first_token(
    prefill_s: float,
    *,
    step_s: float,
    wait_s: float = 0.0,
    prefill_busy_frac: float = 0.0,
    burst_requests: float = 0.0,
    extrapolated: bool = False,
) -> Estimate:
    """Time to first token of one request, in seconds.

    TTFT = overhead + wait for a place + rest of the step that runs + own prefill + prefills ahead of it. Ahead of it
    are half a prefill times the odds that one is running (Poisson arrivals at a server that is ``prefill_busy_frac``
    busy with prefills), and ``burst_requests`` that came at the same moment. There is ground for this where
    ``prefill_s`` comes from kernel tables: the InferenceX rows (docs/throughput.md).

    Args:
        prefill_s: prefill of the prompt alone.
        step_s: step of the running requests.
        wait_s: wait before the request may run (closed or open loop).
        prefill_busy_frac: part of the time in which the server computes prompts.
        burst_requests: mean number of prompts ahead from a common start.
        extrapolated: outside the range of those rows: the interval is twice as wide (in the log).

    Raises:
        InputError: a ``prefill_busy_frac`` below 0 or not below 1.
    """
    value = float(
        first_token_s(
            prefill_s,
            step_s=step_s,
            wait_s=wait_s,
            prefill_busy_frac=prefill_busy_frac,
            burst_requests=burst_requests,
        )
    )
    width = float(np.exp(_Z90 * _TTFT_SD_LOG * (2.0 if extrapolated else 1.0)))
    return Estimate(
        value=value,
        low=value / width,
        high=value * width,
        provenance=Provenance.DERIVED,
        extrapolated=extrapolated,
        note="prefill from kernel tables, overhead from InferenceX rows",
    )
