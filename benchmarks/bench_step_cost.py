"""Speed of the step-cost model: ``python benchmarks/bench_step_cost.py``. Prints seconds and rates of this machine.

What to look at: rows a second of ``predict_columns`` (the search scores every candidate with it), the time to load the
packaged model, and the time of a fit of ten observations.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from planner.data import load_drafter, load_hardware, load_model
from planner.estimate.step_cost import StepBatch, default_model, fit_step_cost
from planner.estimate.step_cost import default as default_module
from planner.estimate.step_cost.observations import tpot_rows


def best_of(n_times: int, work: Callable[[], object]) -> float:
    """Shortest of ``n_times`` runs, in seconds."""
    seconds = []
    for _ in range(n_times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def candidates(n_rows: int) -> StepBatch:
    """Candidates as a search makes them: every layout, budgets 0 to 64, graphs on and off."""
    rng = np.random.default_rng(0)
    q_len = rng.integers(1, 66, n_rows)
    return StepBatch.from_columns(
        tp_size=rng.choice([4, 8], n_rows),
        ep_size=rng.choice([1, 4], n_rows),
        attention_dp_size=rng.choice([1, 4], n_rows),
        q_len=q_len,
        speculation=np.where(q_len == 1, 0, rng.choice([1, 2], n_rows)),
        running=64.0,
        context_tok=1536.0,
        prompt_tok=1024.0,
        accept_len=np.minimum(q_len, 4.5),
        cuda_graph=rng.random(n_rows) < 0.5,
        nvls=rng.random(n_rows) < 0.5,
        kv_bytes_per_element=rng.choice([1, 2], n_rows),
    )


def main() -> None:
    """Print the figures."""
    hardware, model, drafter = load_hardware("b300"), load_model("kimi-k2.6"), load_drafter("kimi-k2.6-dflash")

    def load() -> object:
        default_module.kernel_table.cache_clear()
        default_module.packaged_calibration.__globals__["_calibration"].cache_clear()
        cold = default_model(hardware, model, drafter)
        return cold.predict_columns(StepBatch.from_columns(tp_size=8, q_len=9, speculation=2))

    step = default_model(hardware, model, drafter)
    batch = candidates(300_000)
    step.predict_columns(batch)
    predict_s = best_of(5, lambda: step.predict_columns(batch))
    few = batch.take(np.arange(1000))
    rows = tpot_rows("b200")[:10]
    fit_step_cost(rows, hw="b200", model="kimi-k2.6")
    print(f"predict_columns   {batch.n_rows / predict_s:12,.0f} rows/s ({batch.n_rows:,} rows)")
    print(f"sample            {1000 * 512 / best_of(5, lambda: step.sample(few, 512, 1)):12,.0f} draws/s (512 x 1000)")
    fit_s = best_of(5, lambda: fit_step_cost(rows, hw="b200", model="kimi-k2.6"))
    print(f"load and predict  {best_of(5, load) * 1e3:12.1f} ms (packaged model, first row)")
    print(f"fit               {fit_s * 1e3:12.1f} ms (10 rows)")


if __name__ == "__main__":
    main()
