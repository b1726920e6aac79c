"""A diagnosis as text for a terminal."""

from __future__ import annotations

import textwrap

from planner.diagnose.model import Diagnosis

__all__ = ["render_diagnosis"]

WIDTH = 110
LABEL_WIDTH = 10


def render_diagnosis(diagnosis: Diagnosis) -> str:
    """Cause, confidence, the lines that show it, what it is not, what to try, the limit it suggests, the facts."""
    rows = [f"CAUSE     {diagnosis.cause}   confidence {diagnosis.confidence:.2f} ({diagnosis.level.value})"]
    rows += _row("", diagnosis.title)
    if diagnosis.why and not diagnosis.healthy:
        rows += _row("WHY", diagnosis.why)
    for position, line in enumerate(diagnosis.lines):
        rows += [f"{'SHOWN BY' if position == 0 else '':<{LABEL_WIDTH}}{line.number:>6}: {line.text}"]
    for position, note in enumerate(diagnosis.notes):
        rows += _row("NOTE" if position == 0 else "", note)
    for position, other in enumerate(diagnosis.not_):
        rows += _row("NOT" if position == 0 else "", f"{other.slug}: {other.reason}")
    for position, remedy in enumerate(diagnosis.remedies):
        rows += _row("TRY" if position == 0 else "", f"{position + 1}. {remedy}")
    if (limit := diagnosis.suggested_limit) is not None:
        text = f"{limit.id}: {limit.quantity} {limit.shape.value} {limit.value:g}"
        known = [f"{name} {value:g}" for name, value in (("good", limit.known_good), ("bad", limit.known_bad)) if value]
        text += f" ({', '.join(known)})" if known else ""
        rows += _row("LIMIT", f"{text}; {limit.note}" if limit.note else text)
    for position, other_cause in enumerate(diagnosis.secondary):
        label = "ALSO" if position == 0 else ""
        rows += _row(label, f"{other_cause.slug} ({other_cause.role}), line {other_cause.line.number}")
    rows += _row("LOG", _facts(diagnosis))
    return "\n".join(row.rstrip() for row in rows) + "\n"


def _row(label: str, text: str) -> list[str]:
    pad = " " * LABEL_WIDTH
    return textwrap.wrap(text, WIDTH, initial_indent=f"{label:<{LABEL_WIDTH}}", subsequent_indent=pad) or [label]


def _facts(diagnosis: Diagnosis) -> str:
    facts = diagnosis.facts
    engine = f"{facts.engine or 'engine unknown'} {facts.engine_version or ''}".strip()
    parts = [f"{facts.n_lines} lines", engine, f"reached {facts.phase.value}"]
    if facts.max_running_requests is not None:
        asked = facts.max_running_requests_asked
        parts.append(f"max_running_requests {facts.max_running_requests} (asked {asked if asked is not None else '-'})")
    if facts.captured_batch_sizes:
        parts.append(f"graphs up to batch {facts.captured_batch_sizes[-1]}")
    if facts.num_tokens_per_req is not None:
        parts.append(f"q_len {facts.num_tokens_per_req}")
    if facts.accept_len_full_batch is not None:
        parts.append(f"accept length {facts.accept_len_full_batch:.2f} at full batch ({facts.n_full_batch} lines)")
    return ", ".join(parts)
