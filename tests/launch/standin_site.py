"""Makes a folder that looks like an installed SGLang whose server is the stand-in: for PYTHONPATH in tests."""

from __future__ import annotations

from pathlib import Path

__all__ = ["make_site"]

_HERE = Path(__file__).parent

_SERVER_ARGS = '''
class ServerArgs:
    """The flags that the stand-in takes, with argparse as the engine uses it."""

    @staticmethod
    def add_cli_args(parser):
        for name, kind in (
            ("--model-path", str), ("--host", str), ("--port", int), ("--max-running-requests", int),
            ("--cuda-graph-max-bs-decode", int), ("--cuda-graph-max-bs", int), ("--attention-backend", str),
            ("--page-size", int), ("--tp-size", int), ("--ep-size", int), ("--mem-fraction-static", float),
            ("--kv-cache-dtype", str), ("--speculative-algorithm", str), ("--speculative-draft-model-path", str),
            ("--speculative-num-draft-tokens", int), ("--speculative-ddtree-budget", int),
            ("--speculative-num-steps", int), ("--speculative-eagle-topk", int), ("--decode-log-interval", int),
            ("--api-key", str), ("--chunked-prefill-size", int), ("--context-length", int),
        ):
            parser.add_argument(name, type=kind)
        for name in (
            "--disable-cuda-graph", "--enable-metrics", "--enable-nccl-nvls", "--trust-remote-code",
            "--enable-mixed-chunk", "--disable-overlap-schedule", "--enable-flashinfer-allreduce-fusion",
            "--enable-x", "--enable-y", "--enable-z",
        ):
            parser.add_argument(name, action="store_true")
'''

_CLIENT = '''
"""A benchmark client with the command line and the output line of SGLang's own."""
import argparse, http.client, json, random, statistics, threading, time
from urllib.parse import urlsplit

def main():
    parser = argparse.ArgumentParser()
    for name, default in (("backend", "sglang"), ("base-url", ""), ("dataset-name", ""), ("dataset-path", ""),
                          ("model", ""), ("tokenizer", ""), ("output-file", ""), ("request-rate", "inf"),
                          ("extra-request-body", "{}"), ("tag", None), ("random-range-ratio", "1.0")):
        parser.add_argument("--" + name, default=default)
    for name, default in (("num-prompts", 8), ("random-input-len", 32), ("random-output-len", 16), ("seed", 1),
                          ("max-concurrency", 1), ("warmup-requests", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--disable-tqdm", action="store_true")
    parser.add_argument("--temperature", type=float, default=0.0)
    args, rest = parser.parse_known_args()
    where = urlsplit(args.base_url)
    rng = random.Random(args.seed)
    todo = list(range(args.num_prompts))
    lock = threading.Lock()
    done = []

    def work():
        while True:
            with lock:
                if not todo:
                    return
                todo.pop()
                prompt = " ".join(str(rng.randrange(100, 999)) for _ in range(args.random_input_len))
            body = {"text": prompt, "stream": True,
                    "sampling_params": {"max_new_tokens": args.random_output_len, "temperature": 0}}
            start = time.perf_counter()
            first = None
            count = 0
            try:
                link = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
                link.request("POST", "/generate", json.dumps(body))
                answer = link.getresponse()
                for line in answer:
                    if line.startswith(b"data: {"):
                        count = json.loads(line[6:])["meta_info"]["completion_tokens"]
                        if first is None and count:
                            first = time.perf_counter()
            except OSError:
                continue
            end = time.perf_counter()
            if count:
                with lock:
                    done.append((end - start, (first or end) - start, count))

    begin = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(args.max_concurrency)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    duration = time.perf_counter() - begin
    tokens = sum(row[2] for row in done)
    row = {"tag": args.tag, "backend": args.backend, "request_rate": float("inf"), "duration": duration,
           "max_concurrency": args.max_concurrency, "completed": len(done), "total_output_tokens": tokens,
           "total_input_tokens": args.random_input_len * len(done), "output_throughput": tokens / duration,
           "request_throughput": len(done) / duration, "accept_length": None}
    if done:
        row["median_ttft_ms"] = 1e3 * statistics.median(r[1] for r in done)
        row["median_tpot_ms"] = 1e3 * statistics.median((r[0] - r[1]) / max(1, r[2] - 1) for r in done)
        row["p99_ttft_ms"] = row["median_ttft_ms"]
        row["concurrency"] = sum(r[0] for r in done) / duration
    with open(args.output_file, "a") as stream:
        stream.write(json.dumps(row) + "\\n")

if __name__ == "__main__":
    main()
'''


def make_site(folder: Path, *, version: str = "0.5.23", new_client: bool = True) -> Path:
    """Fills ``folder``; put it on PYTHONPATH."""
    package = folder / "sglang"
    files = {
        "__init__.py": f'__version__ = "{version}"\n',
        "srt/__init__.py": "",
        "srt/server_args.py": _SERVER_ARGS,
        "launch_server.py": (
            f"import sys\nsys.path.insert(0, {str(_HERE)!r})\nimport standin\n"
            "if __name__ == '__main__':\n    standin.main(sys.argv[1:])\n"
        ),
        "bench_serving.py": _CLIENT,
    }
    if new_client:
        files |= {"benchmark/__init__.py": "", "benchmark/serving.py": _CLIENT}
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    info = folder / f"sglang-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n")
    return folder
