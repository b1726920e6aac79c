"""The workload of a running service, from its counters or from its log: what the planner needs to plan for it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from planner.diagnose import LogFacts, diagnose_path
from planner.domain import Workload
from planner.errors import InputError, MissingDataError
from planner.launch.client import CallError, ServerClient
from planner.launch.metrics import Scrape, parse_metrics

__all__ = ["DerivedWorkload", "from_log", "from_metrics", "from_scrapes"]


@dataclass(frozen=True, slots=True)
class DerivedWorkload:
    """A workload with the ground of each figure."""

    workload: Workload
    grounds: tuple[tuple[str, str], ...]
    """Field -> how it was read."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments of ``plan-config``."""
        load = self.workload
        argv = [
            "--target-c",
            str(load.target_c),
            "--context",
            str(load.context_tok),
            "--output-len",
            str(load.output_tok),
        ]
        return (*argv, "--prefix-hit", f"{load.prefix_hit_frac:.3g}")


def _missing(what: str) -> MissingDataError:
    return MissingDataError(
        f"the service has served no requests that would tell its {what}", "read it under its usual load"
    )


def from_scrapes(scrapes: list[Scrape]) -> DerivedWorkload:
    """From readings of /metrics, oldest first. With several, figures are those of the time between.

    Concurrency is the larger of the mean of running + waiting requests and Little's law (requests a second times their
    mean latency); lengths are counters per request.

    Raises:
        MissingDataError: the counters say too little.
    """
    last = scrapes[-1]
    before = scrapes[0] if len(scrapes) > 1 else None

    def per_request(name: str) -> float | None:
        if before is not None:
            gained, requests = last.gained(name, before), last.gained("num_requests_total", before)
        else:
            gained, requests = last.total(name), last.total("num_requests_total")
        return gained / requests if gained is not None and requests else None

    span = "between two readings" if before is not None else "since the server started"
    prompt = per_request("prompt_tokens_total")
    output = per_request("generation_tokens_total")
    if prompt is None and before is not None:
        before, span = None, "since the server started (nothing ended between the readings)"
        prompt, output = per_request("prompt_tokens_total"), per_request("generation_tokens_total")
    if prompt is None or output is None or prompt < 0.5 or output < 0.5:
        raise _missing("lengths")
    cached = per_request("cached_tokens_total") or 0.0
    concurrency, ground = _concurrency(scrapes)
    workload = Workload(
        target_c=max(1, round(concurrency)),
        context_tok=max(1, round(prompt)),
        output_tok=max(1, round(output)),
        prefix_hit_frac=min(1.0, max(0.0, cached / prompt)),
    )
    grounds = (
        ("target_c", ground),
        ("context_tok", f"prompt_tokens_total per request, {span}"),
        ("output_tok", f"generation_tokens_total per request, {span}"),
        ("prefix_hit_frac", f"cached_tokens_total over prompt_tokens_total, {span}"),
    )
    return DerivedWorkload(workload, grounds)


def _concurrency(scrapes: list[Scrape]) -> tuple[float, str]:
    """(requests in the system, how it was read)."""
    inside = [(one.total("num_running_reqs") or 0.0) + (one.total("num_queue_reqs") or 0.0) for one in scrapes]
    mean = sum(inside) / len(inside)
    first, last = scrapes[0], scrapes[-1]
    span_s = last.taken_s - first.taken_s
    latency_s = last.mean_of("e2e_request_latency_seconds", first if len(scrapes) > 1 else None)
    requests = last.gained("num_requests_total", first)
    if latency_s is not None and requests and span_s > 0:
        little = requests / span_s * latency_s
        if little > mean:
            return little, f"Little's law over {span_s:.0f} s (requests a second x mean latency)"
    if mean <= 0:
        raise _missing("concurrency")
    return mean, f"mean of running + waiting requests over {len(scrapes)} readings"


async def from_metrics(
    url: str, *, seconds: float = 10.0, readings: int = 5, api_key: str | None = None
) -> DerivedWorkload:
    """Reads a service ``readings`` times within ``seconds``.

    Raises:
        InputError: the service cannot be reached or has no /metrics.
        MissingDataError: it serves nothing.
    """
    scrapes = []
    async with ServerClient(url, api_key=api_key) as client:
        for number in range(readings):
            if number:
                await asyncio.sleep(seconds / (readings - 1))
            try:
                text = await client.get_text("/metrics", deadline_s=15.0)
            except CallError as error:
                hint = "start the server with --enable-metrics" if error.status == 404 else "check the address"
                raise InputError(f"{url}: no metrics ({error.detail})", hint) from None
            scrapes.append(parse_metrics(text, taken_s=time.monotonic()))
    return from_scrapes(scrapes)


def from_log(path: Path) -> DerivedWorkload:
    """Reads a server's log.

    Raises:
        InputError: the log cannot be read.
        MissingDataError: it has no prefill or decode lines.
    """
    return from_facts(diagnose_path(path).facts)


def from_facts(facts: LogFacts) -> DerivedWorkload:
    """From what a log says. Output length is tokens decoded (throughput x time between decode lines) per request begun.

    Raises:
        MissingDataError: the log says too little.
    """
    if not facts.prefill_new_seq or not facts.decode:
        raise _missing("lengths")
    inside = [point.running_req + (point.queue_req or 0) for point in facts.decode]
    decoded = 0.0
    for before, point in zip(facts.decode, facts.decode[1:], strict=False):
        if before.at_s is None or point.at_s is None or point.gen_tok_per_s is None:
            continue
        # Idle time between two lines is not decoding: its throughput figure already covers the whole span.
        decoded += point.gen_tok_per_s * max(0.0, min(point.at_s - before.at_s, 60.0))
    if decoded <= 0:
        raise MissingDataError("the log's clock does not advance between decode lines", "give a longer log")
    workload = Workload(
        target_c=max(1, round(sum(inside) / len(inside))),
        context_tok=max(1, round((facts.prefill_new_tok + facts.prefill_cached_tok) / facts.prefill_new_seq)),
        output_tok=max(1, round(decoded / facts.prefill_new_seq)),
        prefix_hit_frac=facts.prefix_hit_frac or 0.0,
    )
    grounds = (
        ("target_c", f"mean of running + waiting requests over {len(inside)} decode lines"),
        ("context_tok", f"prompt tokens of {facts.prefill_new_seq} sequences in prefill lines"),
        ("output_tok", "decoded tokens per sequence begun"),
        ("prefix_hit_frac", "cached over all prompt tokens of prefill lines"),
    )
    return DerivedWorkload(workload, grounds)
