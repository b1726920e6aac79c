"""Time the acceptance model, and rebuild its packaged curve tables.

    python benchmarks/bench_acceptance.py               # times on this machine
    python benchmarks/bench_acceptance.py --tables DIR  # writes the tables that ship in planner/data/acceptance

The tables are a pure function of planner/estimate/acceptance/family.py; a test compares them with a fresh computation.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from planner.estimate.acceptance import TreeShape, acceptance_from_rounds, fit_acceptance
from planner.estimate.acceptance.family import MAX_BUDGET, compute_slopes, encode_slopes, table_name

SHIPPED: tuple[tuple[int, int | None, TreeShape], ...] = (
    *((depth, None, TreeShape.BEST_FIRST) for depth in range(1, 17)),
    *((7, topk, TreeShape.BEST_FIRST) for topk in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32)),
    *((15, topk, TreeShape.BEST_FIRST) for topk in (2, 4, 8)),
    (7, None, TreeShape.SPINE),
    (15, None, TreeShape.SPINE),
)
"""Depth (block size - 1), topk and shape of the packaged tables; others are computed on first use."""


def write_tables(folder: Path) -> None:
    """One compressed archive per table."""
    folder.mkdir(parents=True, exist_ok=True)
    for depth, topk, shape in SHIPPED:
        start = time.perf_counter()
        code = encode_slopes(compute_slopes(depth, topk=topk, shape=shape, n_nodes=MAX_BUDGET))
        path = folder / f"{table_name(depth, topk=topk, shape=shape)}.npz"
        np.savez_compressed(path, slopes=code)
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB, {time.perf_counter() - start:.1f} s", flush=True)


def best_ms(call: Callable[[], object], n: int = 7) -> float:
    """Fastest of ``n`` calls."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def report() -> None:
    """Print times: first call (table opened or computed) and repeated calls."""
    one = [{"budget": 8, "topk": 4, "accept_len": 4.48}]
    ten = [(budget, 1 + 1.6 * np.log2(1 + budget)) for budget in (4, 6, 8, 12, 16, 24, 32, 48, 64, 128)]
    start = time.perf_counter()
    fit = fit_acceptance(one, 8)
    print(f"first fit, 1 point, block 8, topk 4: {1e3 * (time.perf_counter() - start):.1f} ms")
    print(f"fit, 1 point:                        {best_ms(lambda: fit_acceptance(one, 8)):.1f} ms")
    start = time.perf_counter()
    fit_acceptance(ten, 16)
    print(f"first fit, 10 points, block 16:      {1e3 * (time.perf_counter() - start):.1f} ms")
    print(f"fit, 10 points:                      {best_ms(lambda: fit_acceptance(ten, 16)):.1f} ms")
    start = time.perf_counter()
    fit_acceptance([(8, 4.0)], 23)
    print(f"first fit at a depth not shipped:    {1e3 * (time.perf_counter() - start):.0f} ms")
    budgets = np.arange(1, 65)
    print(f"predict_band, 64 budgets:            {best_ms(lambda: fit.predict_band(budgets)):.2f} ms")
    print(f"predict, 64 estimates:               {best_ms(lambda: fit.predict(budgets)):.2f} ms")
    print(f"sample, 256 x 64:                    {best_ms(lambda: fit.sample(budgets, 256, 1)):.2f} ms")
    rng = np.random.default_rng(0)
    probs = -np.sort(-rng.dirichlet(np.full(64, 0.05), size=(500, 7)), axis=2)
    rounds = acceptance_from_rounds(probs)
    print(f"exact mode, 500 rounds, budget 64:   {best_ms(lambda: rounds.predict(64), 3):.0f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, metavar="DIR", help="write the packaged tables to DIR")
    arguments = parser.parse_args()
    if arguments.tables is not None:
        write_tables(arguments.tables)
    else:
        report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
