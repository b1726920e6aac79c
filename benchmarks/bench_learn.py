"""How many launches a sweep needs against a random search, and how long a step of it takes.

    python benchmarks/bench_learn.py [TRUTHS]

The truths are drawn as in tests/learn/test_sweep.py with another seed: thresholds, a pair of switches that fails
together, a slow switch, model errors of each draft, noise, flaky starts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from planner.domain import Launch
from planner.learn.journal import open_journal
from planner.learn.pool import pool_of_search
from planner.learn.sweep import sweep
from planner.search.request import WorkloadInput
from tests.learn.engine import Engine, Truth
from tests.learn.test_sweep import best_safe, launches_until_close
from tests.search.strategies import search

LIFTED = ("B300-MLA-VERIFY-ROWS", "B300-MLA-VERIFY-ROWS-X-HEADS", "B300-GRAPH-Q-LEN", "B300-EP8-GRAPHS")


def truth_of(rng: np.random.Generator, drafts: list[str], seed: int) -> Truth:
    """One hidden truth."""
    slow = None
    if rng.random() < 0.6:
        knob = ("enable_nccl_nvls", "allreduce_fusion")[rng.integers(2)]
        slow = (knob, ("True", "False")[rng.integers(2)], float(rng.uniform(0.75, 0.97)))
    return Truth(
        row_limit=float(rng.uniform(200, 2000)),
        graph_q_len_max=float(rng.integers(4, 30)),
        together=("enable_nccl_nvls", "allreduce_fusion") if rng.random() < 0.4 else None,
        slow=slow,
        bend={name: float(np.exp(0.07 * rng.standard_normal())) for name in drafts},
        flaky_frac=float(rng.choice([0.05, 0.1, 0.2])),
        seed=seed,
    )


def main(n_truths: int) -> None:
    """Prints medians, 10 % and 90 % quantiles."""
    pins = {"tp_size": 8, "attention_dp_size": 1, "attention_backend": "triton"}
    lift = dict.fromkeys(LIFTED, "the truth decides")
    solved = search("b300", WorkloadInput(target_c=32), pins=pins, dialect="field", lift=lift)
    pool = pool_of_search(solved, lambda one: (Launch(argv=(str(one),)),), most=150, keep_frac=0.35)
    rates = {trial.id: float(np.median(pool.draws[:, i])) for i, trial in enumerate(pool.trials)}
    drafts = sorted({f"{t.candidate.speculation.value}{t.candidate.budget}" for t in pool.trials if t.candidate})
    rng = np.random.default_rng(99)
    ours, random_search, total, missed = [], [], [], 0
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(n_truths):
            truth = truth_of(rng, drafts, seed + 5000)
            true_rate = {t.id: truth.rate(t.candidate, rates[t.id]) for t in pool.trials if t.candidate}
            target = best_safe(truth, pool, rates)
            with open_journal(Path(folder) / str(seed), header={}) as journal:
                sweep(pool, Engine(truth, rates), journal, first=pool.trials[0], max_launches=len(pool.trials))
                done = [(trial.id, result.tok_per_s) for trial, result in journal.finished]
            count = launches_until_close(done, target, true_rate)
            missed += count is None
            ours.append(count if count is not None else len(pool.trials))
            total.append(len(done))
            engine, order = Engine(truth, rates), np.random.default_rng(seed + 1).permutation(len(pool.trials))
            tried = [(pool.trials[i].id, engine.run(pool.trials[i]).tok_per_s) for i in order]
            random_search.append(launches_until_close(tried, target, true_rate) or len(pool.trials))
    took_s = time.process_time() - start
    for name, values in (("sweep", ours), ("random search", random_search), ("sweep until it ends", total)):
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
        print(f"{name}: median {middle:g} launches, 10 % to 90 %: {low:g} to {high:g}")
    print(f"{missed} of {n_truths} missed; {1e3 * took_s / sum(total):.1f} ms of CPU a launch")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
