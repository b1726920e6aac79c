"""Time of ``plan-config check`` of one file as a whole process, against ``import pydantic``.

Both are started in turn, several times, in one run; medians are compared, so that a busy machine slows both. The goal
of 3 is judged by processor time (user and system), which other work on the machine changes least. Byte code is kept
(``PYTHONDONTWRITEBYTECODE`` is dropped), as it is for an installed package: that of pydantic is kept in any case. The
launch lies in a folder of its own, without a pyproject.toml.

    python -m benchmarks.bench_check --repeats 15
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["main"]

LAUNCH = (
    "python -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --speculative-algorithm EAGLE "
    "--speculative-num-steps 3 --cuda-graph-max-bs 64\n"
)
BASE = "import pydantic"
SCRIPT = str(Path(sys.executable).with_name("plan-config"))
"""The command as pip installs it beside the interpreter."""
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    BASE: ["-c", "import pydantic"],
    "from pydantic import BaseModel": ["-c", "from pydantic import BaseModel"],
    "check l.sh": [SCRIPT, "check", "l.sh"],
    "check --hw b300 l.sh": [SCRIPT, "check", "--hw", "b300", "l.sh"],
    "check --hw b300 --format json l.sh": [SCRIPT, "check", "--hw", "b300", "--format", "json", "l.sh"],
}


def _seconds(arguments: list[str], folder: str) -> tuple[float, float]:
    """Wall time and processor time of one process. A check exits with 1 where it finds something."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], check=False, stdout=subprocess.DEVNULL, env=environment, cwd=folder
    )
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}")
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "l.sh").write_text(LAUNCH, encoding="utf-8")
        for arguments in COMMANDS.values():
            _seconds(arguments, folder)  # once for the file cache and the byte code
        for _ in range(repeats):
            for name, arguments in COMMANDS.items():
                times[name].append(_seconds(arguments, folder))
    base = [statistics.median(taken) for taken in zip(*times[BASE], strict=True)]
    print(f"{'process':<38} {'cpu ms':>7} {'ratio':>6} {'wall ms':>8} {'ratio':>6}")
    for name, taken in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"{name:<38} {cpu * 1e3:>7.0f} {cpu / base[1]:>6.2f} {wall * 1e3:>8.0f} {wall / base[0]:>6.2f}")


if __name__ == "__main__":
    main()
