"""SGLang's own benchmark client as a subprocess, and its one JSON line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.launch.host import Host, run_async
from planner.launch.verdict import Cause, JudgedError, Stage

__all__ = ["Cell", "ClientRun", "Dataset", "client_argv", "read_result", "run_client"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the matrix."""

    concurrency: int
    context_tok: int
    output_tok: int

    def __str__(self) -> str:
        return f"C={self.concurrency} context={self.context_tok} output={self.output_tok}"


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is sent. ``random-ids`` needs no file; its accept length is not that of real text."""

    name: str = "random-ids"
    path: str | None = None
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class ClientRun:
    """What the client measured in one run."""

    tok_per_s: float
    ttft_s: float | None
    tpot_s: float | None
    duration_s: float
    completed: int
    concurrency: float | None
    """Mean number of requests in flight."""


def client_argv(
    python: str,
    module: str,
    base_url: str,
    cell: Cell,
    *,
    n_prompts: int,
    seed: int,
    model: str,
    tokenizer: str,
    dataset: Dataset,
) -> list[str]:
    """The command. The result goes to standard output, so that nothing is written to disk, here or on another host."""
    argv = [python, "-W", "ignore", "-m", module, "--backend", "sglang", "--base-url", base_url]
    argv += ["--model", model, "--tokenizer", tokenizer, "--dataset-name", dataset.name]
    if dataset.path is not None:
        argv += ["--dataset-path", dataset.path]
    argv += ["--random-input-len", str(cell.context_tok), "--random-output-len", str(cell.output_tok)]
    argv += ["--random-range-ratio", "1.0", "--num-prompts", str(n_prompts)]
    argv += ["--max-concurrency", str(cell.concurrency), "--request-rate", "inf", "--seed", str(seed)]
    argv += ["--warmup-requests", "0", "--disable-tqdm", "--output-file", "/dev/stdout"]
    body = {"sampling_params": {"temperature": dataset.temperature}}
    if dataset.temperature:
        argv += ["--extra-request-body", json.dumps(body["sampling_params"])]
    return argv


def read_result(stdout: str) -> dict[str, Any]:
    """The JSON object that the client printed last.

    Raises:
        ValueError: there is none, or it is cut.
    """
    start = stdout.rfind('{"tag"')
    if start < 0:
        raise ValueError("no result in the client's output")
    value, _ = json.JSONDecoder().raw_decode(stdout, start)
    if not isinstance(value, dict):
        raise ValueError("the client's result is no object")
    return value


async def run_client(
    host: Host, argv: list[str], *, n_prompts: int, timeout_s: float, env: Mapping[str, str] | None = None
) -> ClientRun:
    """Runs the client once.

    Raises:
        JudgedError: it failed, was late, answered nothing readable, or requests failed.
    """
    done = await run_async(host, argv, timeout_s=timeout_s, env={"PYTHONUNBUFFERED": "1", **(env or {})})
    if done.code is None:
        raise JudgedError(Cause.BENCH_FAILED, f"the client was not done after {timeout_s:g} s", stage=Stage.BENCH)
    if done.code != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise JudgedError(Cause.BENCH_FAILED, f"the client exited with {done.code}: {last}", stage=Stage.BENCH)
    try:
        result = read_result(done.stdout)
        completed = int(result["completed"])
        if completed < n_prompts:
            raise JudgedError(
                Cause.BENCH_FAILED, f"{n_prompts - completed} of {n_prompts} requests failed", stage=Stage.BENCH
            )
        return ClientRun(
            tok_per_s=float(result["output_throughput"]),
            ttft_s=_seconds(result.get("median_ttft_ms")),
            tpot_s=_seconds(result.get("median_tpot_ms")),
            duration_s=float(result["duration"]),
            completed=completed,
            concurrency=float(result["concurrency"]) if result.get("concurrency") is not None else None,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise JudgedError(
            Cause.BENCH_FAILED, f"the client's result cannot be read: {error}", stage=Stage.BENCH
        ) from None


def _seconds(value_ms: object) -> float | None:
    return value_ms / 1e3 if isinstance(value_ms, (int, float)) and value_ms > 0 else None
