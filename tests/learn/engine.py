"""A stand-in engine in memory, with hidden truths: thresholds, an interaction, a slow knob, noise, flaky starts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.domain import Candidate
from planner.learn.trial import Result, Trial


@dataclass
class Truth:
    """What a sweep must find out. Rates are those of the models, bent by what the models do not know."""

    row_limit: float = 1e9
    graph_q_len_max: float = 1e9
    together: tuple[str, str] | None = None
    """Two switches that fail when both are on."""
    slow: tuple[str, str, float] | None = None
    """``(knob, value, factor)``."""
    bend: dict[str, float] = field(default_factory=dict)
    """Factor by draft, what the models get wrong."""
    noise_frac: float = 0.02
    flaky_frac: float = 0.1
    seed: int = 0

    def fails(self, candidate: Candidate) -> str | None:
        """Cause of a failure that happens every time, or None."""
        if candidate.cuda_graph and candidate.q_len > self.graph_q_len_max:
            return "cuda-illegal-address-capture"
        if candidate.verify_rows_per_rank > self.row_limit:
            return "cublas-exec-failed"
        if self.together and all(getattr(candidate, name) for name in self.together):
            return "nccl-nvls"
        return None

    def rate(self, candidate: Candidate, model_rate: float) -> float:
        """True tok/s."""
        rate = model_rate * self.bend.get(f"{candidate.speculation.value}{candidate.budget}", 1.0)
        if (
            self.slow
            and str(getattr(getattr(candidate, self.slow[0]), "value", getattr(candidate, self.slow[0])))
            == self.slow[1]
        ):
            rate *= self.slow[2]
        return rate


class Engine:
    """Runs trials against a truth and counts launches."""

    def __init__(self, truth: Truth, rates: dict[str, float]) -> None:
        self.truth = truth
        self.rates = rates
        self.rng = np.random.default_rng(truth.seed)
        self.n_launches = 0

    def run(self, trial: Trial, attempt: int = 1) -> Result:
        self.n_launches += 1
        candidate = trial.candidate
        assert candidate is not None
        if self.rng.random() < self.truth.flaky_frac:
            return Result(ok=False, cause="exited", detail="a start that failed by itself", took_s=120.0)
        cause = self.truth.fails(candidate)
        if cause is not None:
            return Result(ok=False, cause=cause, took_s=200.0)
        rate = self.truth.rate(candidate, self.rates[trial.id])
        rate *= float(np.exp(self.truth.noise_frac * self.rng.standard_normal()))
        return Result(ok=True, cause="ok", tok_per_s=rate, took_s=500.0)
