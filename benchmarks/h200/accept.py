"""Acceptance for real: train a small pair (train_tiny.py), serve it with STANDALONE trees, log accept lengths.

``python accept.py --work DIR --out DIR --train-seconds 110 [--probe]``

Accept length does not depend on speed, so all servers run at once, without CUDA graphs. They import while the pair is
trained. Each answers the same held-out prompts, at temperature 0 and 1; at 0 its tokens are compared with those of the
server without speculation. ``--probe`` serves 252 requests at q_len 65 with CUDA graphs instead (16380 verify rows) and
keeps the answers: does the largest batch still answer as without speculation?
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from server import Server, ServerError  # noqa: E402

__all__ = ["PROBE", "SETTINGS", "Setting", "main"]

OUTPUT_TOK = 192
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Setting:
    """One server: steps, topk and draft tokens (root included)."""

    steps: int
    topk: int
    q_len: int
    at_once: int = 64
    graph: bool = False

    @property
    def name(self) -> str:
        return f"accept-s{self.steps}-k{self.topk}-q{self.q_len}" + (f"-c{self.at_once}-graph" if self.graph else "")

    def argv(self, work: Path) -> list[str]:
        argv = ["--model-path", str(work / "tiny-target"), "--dtype", "bfloat16", "--attention-backend", "triton"]
        argv += ["--sampling-backend", "pytorch", "--grammar-backend", "none"]
        argv += ["--cuda-graph-bs", "1", "64", str(self.at_once)] if self.graph else ["--disable-cuda-graph"]
        argv += ["--mem-fraction-static", "0.5", "--max-total-tokens", str(1000 * self.at_once)]
        argv += ["--context-length", "1024", "--max-running-requests", str(self.at_once)]
        argv += ["--skip-server-warmup", "--disable-prefill-cuda-graph"]
        argv += ["--random-seed", "1", "--decode-log-interval", "20"]
        if self.q_len > 1:
            argv += ["--speculative-algorithm", "STANDALONE"]
            argv += ["--speculative-draft-model-path", str(work / "tiny-draft")]
            argv += ["--speculative-num-steps", str(self.steps), "--speculative-eagle-topk", str(self.topk)]
            argv += ["--speculative-num-draft-tokens", str(self.q_len)]
        return argv


SETTINGS = (
    Setting(0, 0, 1),
    Setting(3, 1, 4),
    Setting(5, 1, 6),
    Setting(7, 1, 8),
    Setting(7, 4, 5),
    Setting(7, 4, 9),
    Setting(7, 4, 17),
    Setting(7, 4, 33),
    Setting(7, 8, 9),
    Setting(7, 8, 17),
    Setting(7, 8, 33),
    Setting(7, 8, 65),
)
PROBE = (Setting(0, 0, 1, 252, True), Setting(7, 8, 33, 252, True), Setting(7, 8, 65, 252, True))


def ask(setting: Setting, server: Server, prompts: list[list[int]], temperature: float) -> dict[str, Any]:
    """Every prompt once; tokens and rounds of each."""
    answers: list[dict[str, Any]] = []
    start = time.monotonic()
    for first in range(0, len(prompts), setting.at_once):
        part = prompts[first : first + setting.at_once]
        answers += server.generate(part, OUTPUT_TOK, temperature=temperature, timeout_s=150.0)
        server.check()
    tokens = [int(answer["meta_info"]["completion_tokens"]) for answer in answers]
    rounds = [int(answer["meta_info"].get("spec_verify_ct") or 0) for answer in answers]
    histogram = [answer["meta_info"].get("spec_correct_drafts_histogram") for answer in answers]
    return {
        "temperature": temperature,
        "wall_s": time.monotonic() - start,
        "tokens": tokens,
        "rounds": rounds,
        "histogram": [sum(column) for column in zip(*histogram, strict=False)] if all(histogram) else None,
        "output_ids": [answer.get("output_ids") for answer in answers] if temperature == 0 else None,
    }


def write(record: dict[str, Any], out: Path) -> None:
    """Appends one line; servers run in threads."""
    with _LOCK, (out / "accept.jsonl").open("a") as stream:
        stream.write(json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **record}) + "\n")


def serve(setting: Setting, server: Server, prompts: list[list[int]], out: Path) -> None:
    """Opens one server's gate, asks, writes, stops it."""
    record: dict[str, Any] = {"type": "accept", **asdict(setting), "argv": server.argv}
    try:
        server.open_gate()
        record["ready_s"] = server.wait_ready(150.0)
        for temperature in (0.0, 1.0):
            answer = ask(setting, server, prompts, temperature)
            write({**record, **answer}, out)
    except (ServerError, OSError, ValueError, KeyError) as error:
        fault = {"type": "failure", "error": f"{type(error).__name__}: {error}", "log": server.kept_log(120)}
        write({**record, **fault}, out)
    finally:
        server.stop()


def main(argv: Sequence[str]) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train-seconds", type=float, default=110.0)
    parser.add_argument("--probe", action="store_true")
    args = parser.parse_args(argv)
    work: Path = args.work
    work.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)
    settings = PROBE if args.probe else SETTINGS
    train = [sys.executable, str(HERE / "train_tiny.py"), "--out", str(work), "--seconds", f"{args.train_seconds:g}"]
    with (work / "train.log").open("wb") as log:
        trainer = subprocess.Popen(train, stdout=log, stderr=subprocess.STDOUT)
    servers: list[Server] = []
    try:
        while not (work / "tiny-draft" / "config.json").exists() and trainer.poll() is None:
            time.sleep(0.2)
        time.sleep(args.train_seconds * 0.3)
        os.nice(10)
        for number, setting in enumerate(settings):
            servers.append(Server(setting.name, setting.argv(work), port=36000 + 10 * number, work=work))
        code = trainer.wait(timeout=args.train_seconds + 90)
        print((work / "train.log").read_text()[-1500:], flush=True)
        if code == 0:
            for name in ("train.json", "marginals.npz", "prompts.json"):
                (args.out / name).write_bytes((work / name).read_bytes())
            prompts = json.loads((work / "prompts.json").read_text())
            if args.probe:
                # Twice as many prompts: the second half begins seven bytes later.
                prompts = [*prompts, *(prompt[7:] for prompt in prompts)][: PROBE[0].at_once]
            with ThreadPoolExecutor(len(servers)) as pool:
                list(
                    pool.map(
                        lambda pair: serve(pair[0], pair[1], prompts, args.out), zip(settings, servers, strict=True)
                    )
                )
    finally:
        for server in servers:
            if not server._stream.closed:
                server.stop()
        if trainer.poll() is None:
            trainer.kill()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
