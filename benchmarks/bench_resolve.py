"""Time of reading and resolving a launch, after import: python benchmarks/bench_resolve.py"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planner.data import load_drafter, load_hardware, load_model
from planner.engine.argv import read_argv, write_argv
from planner.engine.resolution import resolve

REPEATS = 300
BASE = ["--model-path", "moonshotai/Kimi-K2.6", "--trust-remote-code", "--tp-size", "8"]
CHAIN = [
    *BASE,
    *("--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "z-lab/Kimi-K2.6-DFlash"),
    *("--max-running-requests", "48", "--mem-fraction-static", "0.85"),
]


def median_ms(call: Callable[[], object]) -> tuple[float, float]:
    """Median and largest of REPEATS calls, in ms."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), max(times)


def main() -> None:
    start = time.perf_counter()
    hardware, model, drafter = load_hardware("b300"), load_model("kimi-k2.6"), load_drafter("kimi-k2.6-dflash")
    print(f"profiles loaded in {(time.perf_counter() - start) * 1e3:.1f} ms")
    for version in ("0.5.23", "0.5.12.post1"):
        for name, argv in (("plain", BASE), ("DFLASH", CHAIN)):
            start = time.perf_counter()
            launch = read_argv(argv, version=version).launch

            def resolved(launch=launch, version=version):  # type: ignore[no-untyped-def]
                return resolve(launch, hardware=hardware, model=model, drafter=drafter, engine_version=version)

            resolved()
            first = (time.perf_counter() - start) * 1e3
            middle, worst = median_ms(resolved)
            reading, _ = median_ms(lambda argv=argv, version=version: read_argv(argv, version=version))
            writing, _ = median_ms(lambda launch=launch, version=version: write_argv(launch, version=version))
            print(
                f"{version:<13} {name:<7} first {first:6.1f} ms (table read); resolve median {middle:.2f} ms, worst "
                f"{worst:.2f} ms; read_argv {reading:.2f} ms; write_argv {writing:.2f} ms"
            )


if __name__ == "__main__":
    main()
