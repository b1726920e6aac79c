"""Time to first token of every core row, and where there is ground for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import Estimate, Provenance, Workload
from planner.estimate.throughput import first_token_s, time_to_first_token
from planner.search.score import Scores

__all__ = ["FirstToken", "first_token"]

Floats = NDArray[np.float64]

_MEASURED_PROMPT_TOK = (1024.0, 8192.0)
_MEASURED_RUNNING = 64.0
"""Prompts and largest concurrency of the InferenceX rows that the formula was tried on (docs/throughput.md)."""
_BEYOND = 2.0
"""The formula is taken to hold up to this factor outside that range, the interval is wider there."""
_AHEAD_PER_CLIENT = 0.05
"""Prefills ahead of a request for each client, from a common start: fitted to the same rows (docs/throughput.md)."""
_MAX_BUSY_FRAC = 0.95


@record(eq=False)
class FirstToken:
    """TTFT of core rows, arrays ``(n,)``."""

    value_s: Floats
    prefill_s: Floats
    """Prefill of one prompt."""
    step_s: Floats
    wait_s: Floats
    busy_frac: Floats
    burst_requests: Floats
    grounded: bool
    """Whether prefill rests on kernel tables: without them there is no estimate."""
    holds: NDArray[np.bool_]
    """Rows near enough to what was measured for a ceiling to be judged."""
    inside: NDArray[np.bool_]
    """Rows within what was measured."""

    def estimate(self, row: int) -> Estimate | None:
        """One row with its interval; None without ground."""
        if not self.grounded:
            return None
        return time_to_first_token(
            float(self.prefill_s[row]),
            step_s=float(self.step_s[row]),
            wait_s=float(self.wait_s[row]),
            prefill_busy_frac=float(self.busy_frac[row]),
            burst_requests=float(self.burst_requests[row]),
            extrapolated=not bool(self.inside[row]),
        )


def first_token(scores: Scores, workload: Workload) -> FirstToken:
    """From scores: the prefill part of a step is the prompts that end in it times one prompt's prefill."""
    batch, step = scores.batch, scores.step
    ends = batch.running * batch.accept_len / batch.output_tok
    part = np.asarray(step.parts["prefill"], dtype=float)
    prefill = part / ends
    busy = np.clip(part / step.value_s, 0.0, _MAX_BUSY_FRAC)
    wait = max(0.0, workload.target_c - scores.n_running) * workload.output_tok / scores.tok_per_s
    burst = _AHEAD_PER_CLIENT * batch.running
    prompt = batch.prompt_tok
    low, high = _MEASURED_PROMPT_TOK
    inside = (prompt >= low) & (prompt <= high) & (batch.running <= _MEASURED_RUNNING)
    near = (prompt >= low / _BEYOND) & (prompt <= high * _BEYOND) & (batch.running <= _MEASURED_RUNNING * _BEYOND)
    # With attention DP a prompt waits for its own rank: nothing of the kind was measured.
    near &= batch.attention_dp_size == 1
    tabled = ("moe", "dense", "all_reduce", "attention")
    grounded = all(step.provenance.get(name) is Provenance.TABLE for name in tabled)
    grounded &= not any("PCIe" in note for note in step.notes)
    value = first_token_s(prefill, step_s=step.value_s, wait_s=wait, prefill_busy_frac=busy, burst_requests=burst)
    return FirstToken(
        value_s=value,
        prefill_s=prefill,
        step_s=step.value_s,
        wait_s=np.asarray(wait),
        busy_frac=busy,
        burst_requests=burst,
        grounded=grounded,
        holds=near & grounded,
        inside=inside & near,
    )
