"""Live judgement of a service: does speculation still pay, is throughput where it was predicted, is there pressure?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.domain import Predicted, Workload
from planner.launch.canary import MIN_ACCEPT_LEN
from planner.launch.metrics import Scrape, accept_len_between

__all__ = ["Reading", "Thresholds", "Warn", "judge", "prometheus_rules"]


class Warn(StrEnum):
    """What a reading warns of."""

    ACCEPT_ONE = "accept-len-1"
    LOSING = "speculation-loses"
    SLOW = "below-interval"
    FAST = "above-interval"
    QUEUE = "queue"
    KV = "kv-pressure"
    RETRACTED = "retracted"
    SILENT = "not-answering"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where warnings begin. None: that figure is not judged."""

    break_even_accept_len: float | None = None
    tok_per_s_low: float | None = None
    tok_per_s_high: float | None = None
    target_c: int | None = None
    """Throughput is judged only when at least 90 % of these run: fewer clients make fewer tokens."""
    kv_usage_frac: float = 0.95
    speculating: bool = True

    @classmethod
    def of(cls, predicted: Predicted | None, workload: Workload | None = None) -> Thresholds:
        """From a plan."""
        if predicted is None:
            return cls()
        return cls(
            break_even_accept_len=predicted.break_even_accept_len.value if predicted.break_even_accept_len else None,
            tok_per_s_low=predicted.tok_per_s.low,
            tok_per_s_high=predicted.tok_per_s.high,
            target_c=workload.target_c if workload else None,
            speculating=predicted.break_even_accept_len is not None or predicted.accept_len.value > 1.0,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Figures of one interval and the warnings they give."""

    tok_per_s: float | None
    accept_len: float | None
    running: float | None
    waiting: float | None
    kv_usage_frac: float | None
    ttft_s: float | None
    warnings: tuple[tuple[Warn, str], ...]


def judge(before: Scrape, after: Scrape, thresholds: Thresholds) -> Reading:
    """Compares two readings of /metrics."""
    span_s = after.taken_s - before.taken_s
    tokens = after.gained("generation_tokens_total", before)
    # The counter grows when a request ends; the gauge is the scheduler's own last figure.
    counted = tokens / span_s if tokens and span_s > 0 else None
    gauge = after.total("gen_throughput")
    running, waiting = after.total("num_running_reqs"), after.total("num_queue_reqs")
    speed = gauge if gauge and running else counted
    usage = after.total("token_usage")
    accept = accept_len_between(before, after)
    if accept is None and running and (told := after.total("spec_accept_length")):
        accept = told
    retracted = after.gained("num_retracted_requests_total", before)
    warnings: list[tuple[Warn, str]] = []
    if accept is not None and thresholds.speculating:
        even = thresholds.break_even_accept_len
        if accept <= MIN_ACCEPT_LEN:
            warnings.append((Warn.ACCEPT_ONE, f"accept length {accept:.2f}: the draft is never accepted"))
        elif even is not None and accept < even:
            text = f"accept length {accept:.2f} is below the break-even {even:.2f}: speculation off would be faster"
            warnings.append((Warn.LOSING, text))
    busy = thresholds.target_c is not None and running is not None and running >= 0.9 * thresholds.target_c
    if speed is not None and busy and thresholds.tok_per_s_low is not None and thresholds.tok_per_s_high is not None:
        interval = f"[{thresholds.tok_per_s_low:.0f}, {thresholds.tok_per_s_high:.0f}]"
        if speed < thresholds.tok_per_s_low:
            warnings.append((Warn.SLOW, f"{speed:.0f} tok/s is below the predicted interval {interval}"))
        elif speed > thresholds.tok_per_s_high:
            warnings.append(
                (Warn.FAST, f"{speed:.0f} tok/s is above the predicted interval {interval}: refit the model")
            )
    if waiting and running and waiting > running:
        warnings.append((Warn.QUEUE, f"{waiting:.0f} requests wait, {running:.0f} run"))
    if usage is not None and usage > thresholds.kv_usage_frac:
        warnings.append((Warn.KV, f"KV pool {usage:.0%} full: requests will be retracted"))
    if retracted:
        warnings.append((Warn.RETRACTED, f"{retracted:.0f} requests were retracted"))
    return Reading(
        tok_per_s=speed,
        accept_len=accept,
        running=running,
        waiting=waiting,
        kv_usage_frac=usage,
        ttft_s=after.mean_of("time_to_first_token_seconds", before),
        warnings=tuple(warnings),
    )


def prometheus_rules(thresholds: Thresholds, *, group: str = "plan-config") -> str:
    """Alert rules (Prometheus' YAML) for the same warnings."""
    rate = "sum by (model_name) (rate({}[5m]))"
    tokens, requests = rate.format("sglang:generation_tokens_total"), rate.format("sglang:num_requests_total")
    steps = rate.format("sglang:spec_verify_calls_total")
    accept = f"({tokens} - {requests}) / {steps}"
    rules: list[tuple[str, str, str, str, str]] = []
    if thresholds.speculating:
        text = "accept length {{ $value | humanize }}: the draft is never accepted; output may be wrong"
        rules.append(("SpeculationNeverAccepted", f"{accept} <= {MIN_ACCEPT_LEN}", "5m", "critical", text))
        if (even := thresholds.break_even_accept_len) is not None:
            text = f"accept length {{{{ $value | humanize }}}} is below the break-even {even:.2f}: off would be faster"
            rules.append(("SpeculationLoses", f"{accept} < {even:.4g}", "15m", "warning", text))
    running = 'sum by (model_name) (sglang:num_running_reqs{tp_rank="0"})'
    waiting = 'sum by (model_name) (sglang:num_queue_reqs{tp_rank="0"})'
    if thresholds.tok_per_s_low is not None and thresholds.target_c is not None:
        expression = f"({tokens} < {thresholds.tok_per_s_low:.6g}) and ({running} >= {0.9 * thresholds.target_c:.6g})"
        text = f"below the predicted interval (low {thresholds.tok_per_s_low:.0f} tok/s)"
        rules.append(("ThroughputBelowPlan", expression, "15m", "warning", text))
    rules.append(("RequestsWait", f"{waiting} > {running}", "10m", "warning", "more requests wait than run"))
    usage = 'max by (model_name) (sglang:token_usage{tp_rank="0"})'
    text = "the KV pool is nearly full: requests will be retracted"
    rules.append(("KvPoolNearlyFull", f"{usage} > {thresholds.kv_usage_frac:.4g}", "5m", "warning", text))
    lines = ["groups:", f"  - name: {group}", "    rules:"]
    for name, expression, hold, severity, text in rules:
        lines += [f"      - alert: {name}", f"        expr: {_quoted(expression)}", f"        for: {hold}"]
        lines += ["        labels:", f"          severity: {severity}"]
        lines += ["        annotations:", f"          summary: {_quoted(text)}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A YAML scalar in single quotes."""
    return "'" + text.replace("'", "''") + "'"
