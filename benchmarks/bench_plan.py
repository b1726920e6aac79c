"""Time of ``plan-config --hw b300 --target-c 64`` as a whole process, against ``import numpy, pydantic``.

Both are started in turn, several times, in one run; medians are compared, so that a busy machine slows both. Wall time
is what the goal of 3 speaks of; processor time is steadier where other work shares the machine. Byte code is kept
(``PYTHONDONTWRITEBYTECODE`` is dropped), as it is for an installed package: that of numpy and pydantic is kept in any
case. Then, in this process, how many candidates are scored and masked a second.

    python -m benchmarks.bench_plan --repeats 9
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

__all__ = ["main"]

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import numpy, pydantic'": ["-c", "import numpy, pydantic"],
    "import planner": ["-c", "import planner"],
    "imports of check": ["-c", "import planner.cli.check"],
    "plan-config --hw b300 --target-c 64": ["-m", "planner.cli", "--hw", "b300", "--target-c", "64"],
}
BASE = "python -c 'import numpy, pydantic'"


def _seconds(arguments: list[str]) -> tuple[float, float]:
    """Wall time and processor time of one process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _scored_per_s(repeats: int) -> tuple[int, list[float]]:
    """Candidates of the headline's space, and for each concurrency how many are scored, masked and ranked a second.

    Every repeat asks for another number of clients, so that nothing of an earlier one can be used again.
    """
    from planner.search.models import load_models
    from planner.search.planning import TREE_DIALECT, request_for, target_of
    from planner.search.request import Question, WorkloadInput, load_subject
    from planner.search.solve import solve

    rates, n_candidates = [], 0
    for target_c in range(64, 64 + repeats):
        question = Question(hw="b300", workload=WorkloadInput(target_c=target_c), dialect=TREE_DIALECT)
        subject = load_subject(question)
        start = time.perf_counter()
        models = load_models(subject.hardware, subject.model, subject.drafter, subject.workload)
        n_candidates = solve(request_for(question, subject, models, target_of(subject))).n_candidates
        rates.append(n_candidates / (time.perf_counter() - start))
    return n_candidates, rates


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():
        _seconds(arguments)  # once for the file cache and the byte code
    for _ in range(repeats):
        for name, arguments in COMMANDS.items():
            times[name].append(_seconds(arguments))
    base = [statistics.median(taken) for taken in zip(*times[BASE], strict=True)]
    print(f"{'process':<38} {'median ms':>9} {'best ms':>8} {'ratio':>6} {'cpu ms':>7} {'ratio':>6}")
    for name, taken in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*taken, strict=True))
        best = min(taken)[0]
        print(
            f"{name:<38} {wall * 1e3:>9.0f} {best * 1e3:>8.0f} {wall / base[0]:>6.2f} "
            f"{cpu * 1e3:>7.0f} {cpu / base[1]:>6.2f}"
        )
    n_candidates, rates = _scored_per_s(repeats)
    print(f"{n_candidates:,} candidates in the space; scored, masked and ranked a second, models loaded each time:")
    print(f"first {rates[0]:,.0f}, median {statistics.median(rates):,.0f}, slowest {min(rates):,.0f}")


if __name__ == "__main__":
    main()
