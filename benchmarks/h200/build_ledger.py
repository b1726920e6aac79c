"""From the raw records of the GPU host to the packaged ledger: ``python benchmarks/h200/build_ledger.py``.

Reads ``benchmarks/h200/raw/*.jsonl.gz`` and writes ``planner/data/observations/h200.jsonl`` (one observation a cell
or a server start) and ``h200_acceptance.jsonl``. A cell's figures are medians over its repeats. ``context_tok`` is the
mean length of a sequence while it was measured (prompt plus half of what was generated) and ``output_tok`` is left
out: the decode lines hold no prefill, and a row with ``output_tok`` would be charged for one.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from design import Job, job_named  # noqa: E402

from planner.domain import Candidate, Metric, Observation, Outcome, Speculation  # noqa: E402
from planner.launch.bench_stats import FULL_BATCH_FRAC  # noqa: E402

__all__ = ["acceptance_observations", "main", "observations", "read_accept", "read_raw"]

SOURCE = "GPU campaign of 2026-11-30 on one rented H200 (docs/h200.md, benchmarks/h200)"
MODEL_IDS = {"dense-8b": "qwen3-8b", "mla-moe-rank": "mla-moe-rank"}
_TELLING = ("RuntimeError", "torch.OutOfMemoryError")
DRIVER = "NVIDIA H200, driver 580.159.04, CUDA 13.0, torch 2.11.0+cu130"


def read_raw(folder: Path = HERE / "raw") -> Iterator[dict[str, Any]]:
    """Every record of every command, in order."""
    for path in sorted(folder.glob("steps_*.jsonl.gz")):
        with gzip.open(path, "rt") as stream:
            yield from map(json.loads, stream)


def read_accept(folder: Path = HERE / "raw") -> Iterator[dict[str, Any]]:
    """Every record of the servers that ran the trained pair."""
    for path in sorted(folder.glob("accept*.jsonl.gz")):
        with gzip.open(path, "rt") as stream:
            yield from map(json.loads, stream)


def _candidate(job: Job) -> Candidate:
    return Candidate(
        tp_size=job.tp_size,
        speculation=Speculation(job.kind),
        budget=job.q_len - 1,
        topk=job.topk,
        q_len=job.q_len,
        max_running_requests=job.max_running,
        cuda_graph=job.graph,
        cuda_graph_max_bs=job.max_running if job.graph else 0,
        attention_backend="triton",
        page_size=1,
        kv_cache_dtype="bf16",
        mem_fraction_static=job.mem_fraction,
        engine_version="0.5.15.post1",
    )


def _base(job: Job, name: str, at: str, server: dict[str, Any] | None, argv: Iterable[str]) -> dict[str, Any]:
    info = (server or {}).get("info") or {}
    return {
        "id": f"h200-20261130-{name}",
        "hardware": "h200",
        "model": MODEL_IDS[job.model],
        "drafter": job.draft,
        "engine_version": "0.5.15.post1",
        "candidate": _candidate(job),
        "argv": tuple(argv),
        "env": tuple(sorted(job.environment().items())),
        "temperature": job.temperature,
        "effective": tuple((k, v) for k, v in sorted(info.items()) if isinstance(v, (bool, int, float, str))),
        "driver": DRIVER,
        "recorded_at": at,
        "source": SOURCE,
    }


def _line_steps(record: dict[str, Any]) -> list[float]:
    full = FULL_BATCH_FRAC * record["concurrency"]
    return [
        running * (accept or 1.0) / rate for running, accept, rate, _ in record["lines"][1:] if running >= full and rate
    ]


def _cell(job: Job, repeats: list[dict[str, Any]], server: dict[str, Any]) -> Observation:
    first = repeats[0]
    steps = [record["step_s"] for record in repeats]
    lines = [step for record in repeats for step in _line_steps(record)]
    metrics = [
        Metric(name="prompt_tok", value=first["context_tok"], unit="tok"),
        Metric(name="generated_tok", value=first["output_tok"], unit="tok"),
        Metric(name="n_full_batch_lines", value=sum(record["n_lines"] for record in repeats), unit="1"),
        Metric(name="line_step_cv", value=pstdev(lines) / fmean(lines), unit="1", low=min(lines), high=max(lines)),
        Metric(name="neighbour_imports", value=float(any(record["neighbour_imports"] for record in repeats)), unit="1"),
    ]
    for name, unit in (("sm_clock_mhz", "MHz"), ("temperature_c", "C"), ("power_w", "W")):
        known = [record["gpu"][name] for record in repeats if record["gpu"].get("n_samples", 0) >= 3]
        if known:
            metrics.append(Metric(name=name, value=fmean(known), unit=unit))
    key = f"{job.name}-c{first['concurrency']}-p{first['context_tok']}"
    return Observation(
        **_base(job, key, first["at"], server, server["argv"]),
        concurrency=first["concurrency"],
        context_tok=round(first["context_tok"] + first["output_tok"] / 2),
        tok_per_s=median(record["tok_per_s"] for record in repeats),
        accept_len=job.accept_len if job.draft else None,
        step_s=median(steps),
        n_repeats=len(repeats),
        spread_frac=(max(steps) - min(steps)) / 2 / median(steps),
        metrics=tuple(metrics),
    )


def _start(job: Job, record: dict[str, Any], number: int) -> Observation:
    usage = record["info"].get("memory_usage") or {}
    metrics = [
        Metric(name="kv_capacity_tok", value=record["info"]["max_total_num_tokens"], unit="tok"),
        Metric(name="ready_s", value=record["ready_s"], unit="s"),
    ]
    for name in ("weight", "kvcache", "graph"):
        if isinstance(usage.get(name), (int, float)):
            metrics.append(Metric(name=f"{name}_gib", value=usage[name], unit="GiB"))
    return Observation(
        **_base(job, f"{job.name}-start{number}", record["at"], record, record["argv"]), metrics=tuple(metrics)
    )


def observations(records: Iterable[dict[str, Any]]) -> list[Observation]:
    """Starts, cells, crowded cells and failures."""
    servers: dict[str, dict[str, Any]] = {}
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    out: list[Observation] = []
    starts: dict[str, int] = {}
    for record in records:
        if record["type"] == "server":
            job = job_named(record["job"])
            servers[job.name] = record
            starts[job.name] = starts.get(job.name, 0) + 1
            out.append(_start(job, record, starts[job.name]))
        elif record["type"] == "cell" and not record["fits"]:
            job = job_named(record["job"])
            name = f"{job.name}-c{record['concurrency']}-p{record['context_tok']}-crowd"
            metrics = (
                Metric(name="running_max", value=record["running_max"], unit="req"),
                Metric(name="queued_max", value=record["queued_max"], unit="req"),
            )
            base = _base(job, name, record["at"], servers[job.name], servers[job.name]["argv"])
            size = {"concurrency": record["concurrency"], "context_tok": record["context_tok"]}
            out.append(Observation(**base, **size, metrics=metrics))
        elif record["type"] == "cell" and record["step_s"]:
            groups.setdefault((record["job"], record["concurrency"], record["context_tok"]), []).append(record)
        elif record["type"] == "failure":
            job = job_named(record["job"])
            detail = next((line for line in record["log"] if line.startswith(_TELLING)), record["error"])
            cause = "oom-capture" if detail.startswith(_TELLING[1]) else "crash"
            base = _base(job, f"{job.name}-failed", record["at"], servers.get(job.name), record["argv"])
            out.append(Observation(**base, outcome=Outcome(cause=cause, detail=detail[:300])))
    for (name, _, _), repeats in groups.items():
        out.append(_cell(job_named(name), repeats, servers[name]))
    return sorted(out, key=lambda item: item.id)


def acceptance_observations(records: Iterable[dict[str, Any]]) -> list[Observation]:
    """One observation a setting and temperature. The first token of an answer comes from the prefill."""
    out = []
    for record in records:
        q_len, steps, topk = record["q_len"], record["steps"], record["topk"]
        kind = Speculation.OFF if q_len == 1 else Speculation.CHAIN if topk == 1 else Speculation.TREE
        candidate = Candidate(
            tp_size=1,
            speculation=kind,
            budget=q_len - 1,
            topk=topk,
            q_len=q_len,
            max_running_requests=(at_once := record.get("at_once", 64)),
            cuda_graph=(graph := bool(record.get("graph"))),
            cuda_graph_max_bs=at_once if graph else 0,
            attention_backend="triton",
            mem_fraction_static=0.5,
            engine_version="0.5.15.post1",
        )
        common = {
            "hardware": "h200",
            "model": "tiny-target",
            "drafter": "tiny-draft" if q_len > 1 else None,
            "engine_version": "0.5.15.post1",
            "candidate": candidate,
            "argv": tuple(record["argv"]),
            "driver": DRIVER,
            "domain": "code",
            "recorded_at": record["at"],
            "source": SOURCE,
        }
        name = f"h200-20261130-accept-s{steps}-k{topk}-q{q_len}" + (f"-c{at_once}-graph" if graph else "")
        if record["type"] == "failure":
            detail = next((line for line in record["log"] if line.startswith("RuntimeError")), record["error"])
            out.append(Observation(id=f"{name}-failed", **common, outcome=Outcome(cause="crash", detail=detail[:300])))
            continue
        n_tok, n_rounds = sum(record["tokens"]) - len(record["tokens"]), sum(record["rounds"])
        metrics = [
            Metric(name="steps", value=steps, unit="1"),
            Metric(name="n_requests", value=len(record["tokens"]), unit="req"),
            Metric(name="n_tok", value=n_tok, unit="tok"),
        ]
        if n_rounds:
            metrics.append(Metric(name="n_rounds", value=n_rounds, unit="1"))
        if record.get("same_as_off") is not None:
            metrics.append(Metric(name="same_as_off_req", value=record["same_as_off"], unit="req"))
        out.append(
            Observation(
                id=f"{name}-t{record['temperature']:g}",
                **common,
                concurrency=at_once,
                context_tok=192,
                output_tok=192,
                temperature=record["temperature"],
                accept_len=n_tok / n_rounds if n_rounds else None,
                metrics=tuple(metrics),
            )
        )
    return sorted(out, key=lambda item: item.id)


def main() -> int:
    """Writes both files."""
    folder = ROOT / "planner" / "data" / "observations"
    accept = acceptance_observations(read_accept())
    for name, items in (("h200", observations(read_raw())), ("h200_acceptance", accept)):
        text = "".join(item.model_dump_json(exclude_none=True, exclude_defaults=True) + "\n" for item in items)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(items)} observations\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
