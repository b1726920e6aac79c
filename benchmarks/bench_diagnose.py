"""How fast a log is diagnosed, and in how much memory.

Writes a log of the asked size (in the form of SGLang's own: arguments, weights, capture, decode and prefill lines of
eight ranks, access log, warnings, request echoes, a crash at the end), reads it in a child process and prints seconds,
megabytes a second and the peak of resident memory; then feeds lines one by one as a followed log would.

    python benchmarks/bench_diagnose.py --bytes 1e9
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planner.diagnose import Diagnoser, diagnose_path

HEAD = """\
[2026-05-28 09:00:00] server_args={{'model_path': 'm', 'tp_size': 8, 'speculative_algorithm': 'DFLASH', \
'speculative_num_draft_tokens': 9, 'max_running_requests': 128, 'mem_fraction_static': 0.88, {many}\
'custom_sigquit_handler': None}}
[2026-05-28 09:00:10 TP0] Load weight begin. avail mem=270.10 GB
[2026-05-28 09:06:10 TP0] Load weight end. elapsed=360.00 s, type=DeepseekV3ForCausalLM, avail mem=190.00 GB
[2026-05-28 09:06:20 TP0] Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=9, avail mem=40.00 GB
[2026-05-28 09:08:20 TP0] Capture target verify CUDA graph end. bs=[1, 2, 4, 8, 16, 32, 64, 128], elapsed=120.00 s
[2026-05-28 09:08:21 TP0] max_total_num_tokens=2200000, chunked_prefill_size=16384, max_prefill_tokens=16384, \
max_running_requests=128, context_len=32768, available_gpu_mem=20.00 GB
[2026-05-28 09:08:30] The server is fired up and ready to roll!
"""
TAIL = """\
[2026-05-28 23:59:59 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "SITE/sglang/srt/managers/scheduler.py", line 2010, in event_loop_overlap
  File "SITE/sglang/srt/speculative/dflash_worker.py", line 485, in verify
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
[2026-05-28 23:59:59] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
"""
WARNINGS = (
    "[{t} TP{r}] Cache flushed successfully!",
    "[{t} TP{r}] The request rid={n} was aborted by the client after {n} tokens",
    "[{t}] WARNING:  Invalid HTTP request received.",
    "[{t} TP{r}] Receive: obj=GenerateReqInput(rid='{n}', text='why does CUDA out of memory happen? {words}')",
    "[{t}] HTTP Request: POST http://127.0.0.1/metrics timeout error budget {n}",
)


def write_log(path: Path, n_bytes: int, seed: int = 7) -> None:
    """A log of about ``n_bytes``: 55 % decode lines, 20 % prefill lines, 20 % access log, 5 % other lines."""
    pick = random.Random(seed)
    many = "".join(f"'option_{number}': None, " for number in range(600))
    words = "lorem ipsum dolor sit amet " * 20
    block = []
    for number in range(40_000):
        stamp = f"2026-05-28 {9 + number // 4000:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
        rank, share = number % 8, pick.random()
        n_req, n_tok = pick.randint(100, 128), pick.randint(1, 999999)
        if share < 0.55:
            block.append(
                f"[{stamp} TP{rank}] Decode batch, #running-req: {n_req}, #token: {n_tok}, "
                f"token usage: {pick.random():.2f}, accept len: {pick.uniform(3.9, 4.9):.2f}, accept rate: 0.43, "
                f"cuda graph: True, gen throughput (token/s): {pick.uniform(3000, 4800):.2f}, #queue-req: {n_req % 9}"
            )
        elif share < 0.75:
            block.append(
                f"[{stamp} TP{rank}] Prefill batch, #new-seq: 1, #new-token: {n_tok % 9999}, #cached-token: 512, "
                "token usage: 0.31, #running-req: 100, #queue-req: 0, cuda graph: False, input throughput (token/s): 9"
            )
        elif share < 0.95:
            port = pick.randint(1024, 65535)
            block.append(f'[{stamp}] INFO:     127.0.0.1:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK')
        else:
            form = pick.choice(WARNINGS)
            block.append(form.format(t=stamp, r=rank, n=pick.randint(1, 10**9), words=words))
    body = ("\n".join(block) + "\n").encode()
    with open(path, "wb") as out:
        written = out.write(HEAD.format(many=many).encode())
        while written < n_bytes:
            written += out.write(body)
        out.write(TAIL.encode())


def read_once(path: Path) -> dict[str, object]:
    """Diagnose in this process; seconds and peak resident bytes."""
    begun = time.perf_counter()
    diagnosis = diagnose_path(path)
    seconds = time.perf_counter() - begun
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "cause": diagnosis.cause,
        "n_lines": diagnosis.facts.n_lines,
        "seconds": seconds,
        "peak_bytes": peak_bytes,
        "accept_len": diagnosis.facts.accept_len_full_batch,
    }


def follow(path: Path, n_lines: int) -> float:
    """Lines a second through ``Diagnoser.feed``, one by one."""
    with open(path, encoding="utf-8") as stream:
        lines = [line for _, line in zip(range(n_lines), stream, strict=False)]
    diagnoser = Diagnoser()
    begun = time.perf_counter()
    for line in lines:
        diagnoser.feed(line)
    diagnoser.result()
    return len(lines) / (time.perf_counter() - begun)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=float, default=1e8)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read_once(options.read)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        write_log(path, int(options.bytes))
        size = os.path.getsize(path)
        command = [sys.executable, __file__, "--read", str(path)]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        seconds = answer["seconds"]
        print(f"log            {size / 1e6:,.0f} MB, {answer['n_lines']:,} lines")
        print(
            f"diagnosed in   {seconds:.1f} s ({size / 1e6 / seconds:,.0f} MB/s), "
            f"peak {answer['peak_bytes'] / 1e6:,.0f} MB"
        )
        print(f"cause          {answer['cause']}, accept len {answer['accept_len']}")
        print(f"followed       {follow(path, 200_000):,.0f} lines/s, one by one")


if __name__ == "__main__":
    main()
