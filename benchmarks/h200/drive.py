"""Run jobs of the design on a GPU host until a deadline; every result is written at once.

``python drive.py --models DIR --out DIR --state DIR --seconds 560 [--gpus 0] [--jobs NAME ...]``

``--state`` remembers which jobs are done, so that the next command goes on where this one stopped. While a server is
measured the next one imports and waits at its gate (serve.py).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from design import JOBS, Cell, Job, job_named  # noqa: E402
from server import Gpu, Server, ServerError, prompt  # noqa: E402

from planner.launch.bench_stats import full_batch  # noqa: E402

__all__ = ["Campaign", "main"]

WARM_STEPS = 12
STEPS = 45
SLOW_STEPS = 20
SLOW_STEP_S = 0.06
RESERVE_S = 6.0
_SETTINGS = (
    "version",
    "max_total_num_tokens",
    "mem_fraction_static",
    "max_running_requests",
    "chunked_prefill_size",
    "attention_backend",
    "decode_attention_backend",
    "prefill_attention_backend",
    "sampling_backend",
    "page_size",
    "kv_cache_dtype",
    "disable_cuda_graph",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "moe_runner_backend",
    "context_length",
    "dtype",
    "tp_size",
    "ep_size",
    "dp_size",
)


class Campaign:
    """State of one command."""

    def __init__(
        self,
        models: str,
        out: Path,
        state: Path,
        *,
        seconds: float,
        gpus: str = "0",
        launcher: Sequence[str] | None = None,
        ready_s: float = 240.0,
    ) -> None:
        self.models, self.out, self.state, self.gpus = models, out, state, gpus
        self.launcher, self.ready_s = launcher, ready_s
        self.deadline = time.monotonic() + seconds
        out.mkdir(parents=True, exist_ok=True)
        state.mkdir(parents=True, exist_ok=True)
        first = gpus.split(",")[0]
        self.gpu = Gpu(state / f"gpu-{time.time_ns()}.csv", index=first)
        self.port = 31000 + 4000 * int(first) + 20 * len(list(state.glob("*.log")))
        self.device = _device()

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic() - RESERVE_S

    def write(self, record: dict[str, Any]) -> None:
        """Appends one line."""
        record = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **record}
        with (self.out / "raw.jsonl").open("a") as stream:
            stream.write(json.dumps(record) + "\n")

    def done(self) -> set[str]:
        path = self.state / "done"
        return set(path.read_text().split()) if path.exists() else set()

    def mark(self, key: str) -> None:
        with (self.state / "done").open("a") as stream:
            stream.write(key + "\n")

    def begin(self, job: Job) -> Server:
        """The job's server, waiting at its gate."""
        self.port += 3
        return Server(
            job.name,
            job.argv(self.models),
            port=self.port,
            work=self.state,
            env={**job.environment(), "CUDA_VISIBLE_DEVICES": self.gpus},
            launcher=self.launcher,
        )

    def run(self, jobs: Sequence[Job]) -> None:
        """Every job that is not done and fits the time left."""
        names = [job.name for job in jobs]
        self.write({"type": "command", "device": self.device, "gpus": self.gpus, "jobs": names})
        waiting = [job for job in jobs if job.name not in self.done()]
        server: Server | None = None
        try:
            while waiting and self.left_s > 0:
                job = waiting.pop(0)
                if server is None and self.left_s < job.estimate_s:
                    self.write({"type": "skipped", "job": job.name, "left_s": self.left_s})
                    continue
                server = server or self.begin(job)
                follower = waiting[0] if waiting else None

                def prepare(job: Job | None = follower) -> Server | None:
                    return self.begin(job) if job is not None and self.left_s > job.estimate_s else None

                server = self.measure(job, server, prepare)
                if server is None and waiting:
                    continue
        finally:
            if server is not None:
                server.stop()
            self.gpu.stop()

    def measure(self, job: Job, server: Server, prepare: Callable[[], Server | None]) -> Server | None:
        """All cells of a job. Returns the next job's server, importing or at its gate; the job's own is stopped."""
        follower: Server | None = None
        free_mib = self.gpu.wait_free(6000, 15.0)
        server.open_gate()
        base = {"job": job.name, "argv": server.argv, "env": server.own_env}
        complete = True
        try:
            ready_s = server.wait_ready(min(self.ready_s, max(self.left_s, 1.0)))
            info = _settings(server)
            head = {
                "type": "server",
                **base,
                "ready_s": ready_s,
                "import_s": (server.opened_at or 0) - server.started_at,
            }
            self.write(
                {**head, "info": info, "memory_before_mib": free_mib, "gpu": self.gpu.between(0) and _used(self.gpu)}
            )
            follower = prepare()
            vocab = json.loads((Path(self.models) / job.model / "config.json").read_text())["vocab_size"]
            for cell in job.cells:
                key = f"{job.name}|{cell.concurrency}|{cell.context_tok}|{cell.fits}"
                if key in self.done():
                    continue
                if self.left_s < 8:
                    complete = False
                    self.write({"type": "cut", "job": job.name, "cell": asdict(cell)})
                    break
                self.cell(job, server, cell, vocab, importing=follower is not None and not follower.imports_done())
                self.mark(key)
        except (ServerError, OSError, ValueError) as error:
            complete = self.left_s > 8
            self.write(
                {"type": "failure", **base, "error": f"{type(error).__name__}: {error}", "log": server.kept_log()}
            )
        finally:
            self.write({"type": "log", "job": job.name, "lines": server.kept_log(120)})
            server.stop()
        if complete:
            self.mark(job.name)
        return follower

    def cell(self, job: Job, server: Server, cell: Cell, vocab: int, *, importing: bool) -> None:
        """Warm-up, then the repeats of one cell."""
        prompts = [prompt(i, cell.context_tok, vocab) for i in range(cell.concurrency)]
        record: dict[str, Any] = {"type": "cell", "job": job.name, **asdict(cell)}
        if not cell.fits:
            self.write({**record, **self.crowd(job, server, prompts)})
            return
        warm_s = self.call(job, server, prompts, WARM_STEPS)["wall_s"]
        rough_s = _last_step_s(server, cell.concurrency)
        n_steps = SLOW_STEPS if (rough_s or warm_s / WARM_STEPS) > SLOW_STEP_S else STEPS
        for repeat in range(cell.repeats):
            server.log.open_window()
            start = self.gpu.mark()
            answer = self.call(job, server, prompts, n_steps)
            points = server.log.close_window()
            full = full_batch(points, cell.concurrency)
            self.write(
                {
                    **record,
                    "repeat": repeat,
                    "n_steps": n_steps,
                    "warm_s": warm_s,
                    **answer,
                    "tok_per_s": full.tok_per_s,
                    "accept_len": full.accept_len,
                    "step_s": full.step_s,
                    "n_lines": full.n_lines,
                    "lines": [[p.running_req, p.accept_len, p.gen_tok_per_s, p.graph] for p in points],
                    "gpu": self.gpu.between(start),
                    "neighbour_imports": importing,
                }
            )

    def call(self, job: Job, server: Server, prompts: Sequence[Sequence[int]], n_steps: int) -> dict[str, float]:
        """One batch of that many decode steps."""
        n_tok = 1 + round(n_steps * job.accept_len)
        start = time.monotonic()
        answers = server.generate(prompts, n_tok, temperature=job.temperature, timeout_s=max(self.left_s, 5.0))
        wall_s = time.monotonic() - start
        # The last decode lines are printed after the answer went out.
        time.sleep(0.05)
        server.check()
        total = sum(int(answer["meta_info"]["completion_tokens"]) for answer in answers)
        cached = sum(int(answer["meta_info"].get("cached_tokens") or 0) for answer in answers)
        verify = sum(int(answer["meta_info"].get("spec_verify_ct") or 0) for answer in answers)
        return {"wall_s": wall_s, "output_tok": n_tok, "total_tok": total, "cached_tok": cached, "verify_ct": verify}

    def crowd(self, job: Job, server: Server, prompts: Sequence[Sequence[int]]) -> dict[str, Any]:
        """A cell that is too large for the KV pool: how many requests run at once."""
        server.log.open_window()
        failure: list[BaseException] = []

        def ask() -> None:
            try:
                server.generate(prompts, 400, temperature=job.temperature, timeout_s=40.0)
            except (OSError, ValueError) as error:
                failure.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(timeout=min(14.0, max(self.left_s - 5, 1.0)))
        points = server.log.close_window()
        server.abort()
        thread.join(timeout=10.0)
        running = [point.running_req for point in points]
        return {
            "running_max": max(running, default=0),
            "queued_max": max((point.queue_req or 0 for point in points), default=0),
            "lines": [[p.running_req, p.queue_req, p.used_frac, p.gen_tok_per_s] for p in points],
        }


def _last_step_s(server: Server, concurrency: int) -> float | None:
    server.log.read()
    lines = [line for line in server.log.last_lines if "Decode batch" in line]
    if not lines:
        return None
    try:
        rate = float(lines[-1].split("gen throughput (token/s): ")[1].split(",")[0])
        accept = lines[-1].split("accept len: ")[1].split(",")[0] if "accept len" in lines[-1] else "1"
    except (IndexError, ValueError):
        return None
    return concurrency * float(accept) / rate if rate > 0 else None


def _settings(server: Server) -> dict[str, Any]:
    info = server.get("/server_info")
    states = info.get("internal_states") or [{}]
    kept = {name: info[name] for name in _SETTINGS if name in info}
    kept["memory_usage"] = states[0].get("memory_usage")
    kept["max_running_effective"] = states[0].get("effective_max_running_requests_per_dp")
    kept["startup_time"] = info.get("startup_time")
    return kept


def _used(gpu: Gpu) -> dict[str, float]:
    return {"memory_mib": gpu.wait_free(1e9, 0.0)}


def _device() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,vbios_version", "--format=csv,noheader"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {"name": "none"}
    name, driver, memory, vbios = (part.strip() for part in text.split(","))
    return {"name": name, "driver": driver, "memory": memory, "vbios": vbios}


def main(argv: Sequence[str]) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--gpus", default="0", help="as CUDA_VISIBLE_DEVICES: one driver a GPU may run beside another")
    parser.add_argument("--jobs", nargs="*", default=None)
    args = parser.parse_args(argv)
    jobs = [job_named(name) for name in args.jobs] if args.jobs else list(JOBS)
    Campaign(args.models, args.out, args.state, seconds=args.seconds, gpus=args.gpus).run(jobs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
