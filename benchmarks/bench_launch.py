"""Load and size of the launch room: log following, ledger, and the benchmark client's own overhead.

``python benchmarks/bench_launch.py [--server-python VENV/bin/python] [--quick]`` prints one line a measurement.
Nothing is written outside a temporary folder. The client is measured against the stand-in server of the tests, whose
steps take no time: what is left is what the client and HTTP cost.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "launch"))
LINE = (
    "[2026-11-30 08:38:11] Decode batch, #running-req: 64, #token: 8400, token usage: 0.02, accept len: 3.50, "
    "accept rate: 0.50, cuda graph: True, gen throughput (token/s): 4500.00, #queue-req: 0\n"
)


def follow(folder: Path, seconds: float) -> None:
    """A log that grows by 10,000 lines a second, followed by the launcher's own reader."""
    from planner.launch.logwatch import LogWatch

    path = folder / "server.log"
    path.touch()
    watch = LogWatch(path)
    done = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        start = time.monotonic()
        with path.open("a") as stream:
            while (spent := time.monotonic() - start) < seconds:
                due = int(spent * 10_000) - written
                if due > 0:
                    stream.write(LINE * due)
                    stream.flush()
                    written += due
                time.sleep(0.01)
        done.set()

    writer = threading.Thread(target=write)
    before = resource.getrusage(resource.RUSAGE_SELF)
    writer.start()
    worst = 0
    while not done.is_set():
        time.sleep(0.25)
        worst = max(worst, watch.read())
    behind = watch.read()
    writer.join()
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"follow: {written} lines in {seconds:g} s, read {watch.n_lines}, {behind} still to read at the end, "
        f"{cpu / seconds:.0%} of a core (writer included)"
    )


def pump(folder: Path, n_lines: int) -> None:
    """How fast the log process hides secrets and writes."""
    source = folder / "raw.log"
    source.write_text(LINE * n_lines)
    start = time.monotonic()
    with source.open("rb") as stream:
        subprocess.run(
            [sys.executable, "-m", "planner.launch.logpump", str(folder / "out.log")], stdin=stream, check=True
        )
    took = time.monotonic() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(
        f"log process: {n_lines} lines in {took:.2f} s, {cpu:.2f} s of CPU ({n_lines / cpu:,.0f} lines a CPU second, "
        "start included)"
    )


def ledger(folder: Path, n: int) -> None:
    """A ledger of n observations: `show` as a whole process."""
    from planner.domain import Observation
    from planner.launch.ledger import Ledger

    path = folder / "ledger.db"

    def rows():
        base = Observation(
            id="x", hardware="b300", model="kimi-k2.6", engine_version="0.5.23", source="benchmark",
            argv=("python", "-m", "sglang.launch_server", "--tp-size", "8"), recorded_at="2026-11-30T00:00:00+00:00",
        )  # fmt: skip
        for number in range(n):
            yield base.model_copy(
                update={"id": f"obs-{number}", "concurrency": 1 + number % 64, "tok_per_s": 100.0 + number % 977}
            )

    start = time.monotonic()
    with Ledger(path, create=True) as opened:
        opened.append(rows())
    print(f"ledger: {n} observations written in {time.monotonic() - start:.1f} s, {path.stat().st_size / 1e6:.0f} MB")
    with Ledger(path) as opened:
        start = time.monotonic()
        opened.totals()
        opened.last(20)
        print(f"ledger: the query of `show` alone {1e3 * (time.monotonic() - start):.1f} ms")
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", "import numpy, pydantic"], check=True)
    print(f"for comparison: python -c 'import numpy, pydantic' {time.monotonic() - start:.2f} s")
    code = "import sys; from planner.cli.ledger import ledger; ledger(sys.argv[1:])"
    for name, words in (
        ("show", ["show", str(path)]),
        ("show, filtered", ["show", str(path), "--hardware", "b300", "--cause", "ok"]),
        ("show, filter that finds nothing", ["show", str(path), "--cause", "oom-capture"]),
        ("show --id", ["show", str(path), "--id", "obs-777"]),
    ):
        walls = []
        for _ in range(3):
            start = time.monotonic()
            subprocess.run([sys.executable, "-c", code, *words], check=True, stdout=subprocess.DEVNULL)
            walls.append(time.monotonic() - start)
        print(f"ledger {name}: {min(walls):.2f} s (whole process, best of 3)")


def client(folder: Path, server_python: str | None, concurrency: int) -> None:
    """SGLang's client at a concurrency, against a server that answers at once."""
    from standin import Truth
    from standin_site import make_site

    from planner.launch.bench_client import Cell, Dataset, client_argv, read_result
    from planner.launch.session import free_port

    site, port = make_site(folder / "site"), free_port()
    environment = {**os.environ, "PYTHONPATH": str(site), **Truth(step_s=0.0, seed=1).env()}
    argv = [
        sys.executable,
        "-m",
        "sglang.launch_server",
        "--port",
        str(port),
        "--max-running-requests",
        str(concurrency),
    ]
    argv += ["--decode-log-interval", "1000000"]
    server = subprocess.Popen(argv, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                urlopen(f"{url}/health", timeout=2).close()
                break
            except OSError:
                time.sleep(0.05)
        n = concurrency * 4
        python = server_python or sys.executable
        environment = dict(os.environ) if server_python else {**os.environ, "PYTHONPATH": str(site)}
        if server_python:
            environment["PYTHONPATH"] = str(ROOT / "tests" / "server" / "stubs")
            environment |= {"HF_HUB_OFFLINE": "1", "SGLANG_USE_CPU_ENGINE": "1"}
        tokenizers = sorted((ROOT / ".contract").glob("tiny-*/tokenizer.json"))
        name = str(tokenizers[0].parent) if tokenizers else "standin"
        cell = Cell(concurrency, 64, 64)
        words = client_argv(
            python,
            "sglang.benchmark.serving",
            url,
            cell,
            n_prompts=n,
            seed=1,
            model=name,
            tokenizer=name,
            dataset=Dataset(),
        )
        start = time.monotonic()
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        took = time.monotonic() - start
        if done.returncode:
            print(f"client: failed: {done.stderr.strip().splitlines()[-1:]}")
            return
        result = read_result(done.stdout)
        which = "SGLang 0.5.23's own client" if server_python else "the stand-in's client"
        print(
            f"client at C={concurrency} ({which}): {result['completed']} requests of 64 tokens "
            f"in {result['duration']:.2f} s, "
            f"{result['output_throughput']:,.0f} tok/s, {1e3 * result['duration'] / n:.2f} ms a request, "
            f"whole process {took:.1f} s"
        )
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server-python", help="measure SGLang's own client with this interpreter")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print(json.dumps({"cores": os.cpu_count(), "load": [round(value, 1) for value in os.getloadavg()]}))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        follow(folder, 3.0 if args.quick else 20.0)
        pump(folder, 50_000 if args.quick else 500_000)
        ledger(folder, 20_000 if args.quick else 1_000_000)
        for concurrency in (64,) if args.quick else (32, 256):
            client(folder, args.server_python, concurrency)


if __name__ == "__main__":
    main()
