"""The boundary that a failed run gives evidence for, in the named quantities of the limits."""

from __future__ import annotations

import re

from planner.diagnose.facts import FactReader
from planner.diagnose.judge import Verdict
from planner.diagnose.model import SuggestedLimit
from planner.domain.limit import LimitShape

__all__ = ["suggest"]

_ABOVE = re.compile(r"--mem-fraction-static above (\d{1,3}(?:\.\d{1,9})?)")
_SHARED = re.compile(r"Required: (\d{1,15}), Hardware limit: (\d{1,15})")
_FROM_TO = re.compile(
    r"(?:from (?:the requested )?(\d{1,15}) to (\d{1,15})|(\d{1,15}) -> (\d{1,15})|(?:re-?set|capped) to (\d{1,15}))"
)
_REQUIRED = re.compile(r"required=(\d{1,15})[^\d]{1,40}capacity=(\d{1,15})")


def suggest(verdict: Verdict, facts: FactReader) -> SuggestedLimit | None:
    """The limit that follows from the cause and the facts; None when the log does not hold the number."""
    rows = _ROWS.get(verdict.slug)
    if rows is not None:
        return _rows(facts, rows)
    text = " ".join(line.text for line in verdict.lines)
    fraction = _fraction(facts)
    match verdict.slug:
        case "cuda-illegal-address-capture" | "cuda-illegal-address-spec-replay":
            note = "rows may be the cause instead; vary one of them at a time"
            return _bad("SEEN-GRAPH-Q-LEN", "q_len", facts.q_len, note) if (facts.q_len or 1) > 1 else None
        case "oom-capture":
            return _bad("SEEN-CAPTURE-BATCH", "cuda_graph_max_bs", _batch(facts), "at this mem_fraction_static")
        case "oom-startup" | "oom-runtime" if fraction is not None:
            return _bad("SEEN-MEM-FRACTION", "mem_fraction_static", fraction, "with this model, context and batch")
        case "kv-pool-too-small":
            least = _ABOVE.search(text)
            if least is not None:
                return _least(float(least.group(1)), "least value that the engine names")
            return _least(fraction, "too low in this run: raise it") if fraction is not None else None
        case "throttled-max-running":
            return _running(text, facts)
        case "smem-out-of-resources" if (found := _SHARED.search(text)) is not None:
            asked, limit = float(found.group(1)), float(found.group(2))
            return SuggestedLimit(
                id="SEEN-SHARED-MEMORY",
                quantity="shared_memory_per_block_bytes",
                shape=LimitShape.AT_MOST,
                value=limit,
                known_good=limit,
                known_bad=asked,
                note="hardware limit, and what the kernel asked for",
            )
        case "deepep-dispatch-cap":
            return _dispatch(text, facts)
        case "tp-quant-shape":
            size = facts.args.get("tp_size")
            if isinstance(size, int) and size > 1:
                return _bad("SEEN-TP-SIZE", "tp_size", size, "for this checkpoint's quantization")
    return None


_ROWS = {
    "cublas-exec-failed": "SEEN-VERIFY-ROWS",
    "kernel-launch-failed-capture": "SEEN-LAUNCH-ROWS",
    "capture-failed-unknown": "SEEN-CAPTURE-ROWS",
}


def _batch(facts: FactReader) -> int | None:
    """Batch size whose capture failed: the one begun last, else the largest asked for."""
    if facts.capturing is not None:
        return facts.capturing
    if facts.batches:
        return max(facts.batches)
    sizes = [facts.args.get(name) for name in ("cuda_graph_max_bs_decode", "cuda_graph_max_bs", "max_running_requests")]
    known = [size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0]
    return min(known) if known else None


def _rows(facts: FactReader, name: str) -> SuggestedLimit | None:
    batch = _batch(facts)
    if batch is None:
        return None
    q_len = facts.q_len or 1
    note = f"batch {batch} x q_len {q_len}"
    return _bad(name, "verify_rows_per_rank", batch * q_len, note)


def _running(text: str, facts: FactReader) -> SuggestedLimit | None:
    found = _FROM_TO.search(text)
    if found is not None:
        numbers = [int(group) for group in found.groups() if group is not None]
        return _at_most("SEEN-MAX-RUNNING", "max_running_requests", numbers[-1], "what the engine runs at once")
    effective = facts.capacity.get("max_running_requests")
    if effective is None:
        return None
    return _at_most("SEEN-MAX-RUNNING", "max_running_requests", effective, "effective, per attention-DP worker")


def _dispatch(text: str, facts: FactReader) -> SuggestedLimit | None:
    found = _REQUIRED.search(text)
    if found is not None:
        return _bad("SEEN-DISPATCH-TOKENS", "dispatch_tok_per_rank", int(found.group(1)), f"capacity {found.group(2)}")
    batch = _batch(facts)
    if batch is None:
        return None
    return _bad("SEEN-DISPATCH-TOKENS", "dispatch_tok_per_rank", batch * (facts.q_len or 1), "batch x q_len")


def _fraction(facts: FactReader) -> float | None:
    value = facts.args.get("mem_fraction_static")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _bad(name: str, quantity: str, value: float | None, note: str) -> SuggestedLimit | None:
    if value is None:
        return None
    return SuggestedLimit(
        id=name, quantity=quantity, shape=LimitShape.AT_MOST, value=float(value), known_bad=float(value), note=note
    )


def _at_most(name: str, quantity: str, value: float, note: str) -> SuggestedLimit:
    return SuggestedLimit(
        id=name, quantity=quantity, shape=LimitShape.AT_MOST, value=float(value), known_good=float(value), note=note
    )


def _least(value: float, note: str) -> SuggestedLimit:
    return SuggestedLimit(
        id="SEEN-MEM-FRACTION", quantity="mem_fraction_static", shape=LimitShape.AT_LEAST, value=value, note=note
    )
