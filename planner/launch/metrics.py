"""The server's /metrics: Prometheus text in, sums and means out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Scrape", "accept_len_between", "parse_metrics"]

_LINE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PREFIX = "sglang:"


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading. Names are without the prefix ``sglang:``."""

    samples: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]] = field(default_factory=dict)
    taken_s: float = 0.0
    """Monotonic time."""

    def total(self, name: str, **labels: str) -> float | None:
        """Sum over the samples that carry these labels; None when there is none. Tensor-parallel ranks but the first
        repeat the same figure and are left out."""
        chosen = [
            value
            for have, value in self.samples.get(name, ())
            if have.get("tp_rank", "0") == "0" and all(have.get(key) == want for key, want in labels.items())
        ]
        return sum(chosen) if chosen else None

    def mean_of(self, name: str, before: Scrape | None = None) -> float | None:
        """Mean of a histogram, over all time or since ``before``."""
        total, count = self.total(f"{name}_sum"), self.total(f"{name}_count")
        if total is None or count is None:
            return None
        if before is not None:
            total -= before.total(f"{name}_sum") or 0.0
            count -= before.total(f"{name}_count") or 0.0
        return total / count if count > 0 else None

    def gained(self, name: str, before: Scrape) -> float | None:
        """Growth of a counter since ``before``; None when it is absent or was reset.

        A counter with labels appears with its first event: one that is in this reading only began at 0.
        """
        now, then = self.total(name), before.total(name)
        if then is None and before.samples:
            then = 0.0
        if now is None or then is None or now < then:
            return None
        return now - then


def parse_metrics(text: str, *, taken_s: float = 0.0) -> Scrape:
    """Reads the text form. Lines that are no samples, and values that are no finite numbers, are left out."""
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for line in text.splitlines():
        if not line or line[0] == "#":
            continue
        found = _LINE.match(line)
        if found is None or not found["name"].startswith(_PREFIX) or found["name"].endswith("_bucket"):
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        if math.isfinite(value):
            labels = dict(_LABEL.findall(found["labels"] or ""))
            samples.setdefault(found["name"].removeprefix(_PREFIX), []).append((labels, value))
    return Scrape({name: tuple(rows) for name, rows in samples.items()}, taken_s)


def accept_len_between(before: Scrape, after: Scrape) -> float | None:
    """Tokens committed per verify step between two readings, bonus token included.

    From counters (``generation_tokens_total``, ``spec_verify_calls_total``, 0.5.23 metrics_collector.py:1861-1866). The
    first token of a request comes from its prefill and is left out. None: no verify step, or counters not there.
    """
    steps = after.gained("spec_verify_calls_total", before)
    tokens = after.gained("generation_tokens_total", before)
    requests = after.gained("num_requests_total", before)
    if not steps or tokens is None or requests is None:
        return None
    return (tokens - requests) / steps
