"""The reproduction table as Markdown (for docs/reproduction.md) and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from planner.domain import Estimate

__all__ = ["ReproducedRow", "render_reproduction", "reproduction_to_dict"]


class _Run(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def hardware(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def outcome(self) -> str: ...
    @property
    def tok_per_s(self) -> float | None: ...
    @property
    def role(self) -> str: ...
    @property
    def assumed(self) -> tuple[str, ...]: ...


class ReproducedRow(Protocol):
    """One field note against the planner (``planner.search.reproduction.Reproduced``)."""

    @property
    def run(self) -> _Run: ...
    @property
    def what(self) -> str: ...
    @property
    def allowed(self) -> bool: ...
    @property
    def broken(self) -> tuple[str, ...]: ...
    @property
    def slow(self) -> tuple[str, ...]: ...
    @property
    def verdict_right(self) -> bool: ...
    @property
    def tok_per_s(self) -> Estimate | None: ...
    @property
    def error_frac(self) -> float | None: ...
    @property
    def inside(self) -> bool | None: ...
    @property
    def missing(self) -> str | None: ...


def render_reproduction(rows: Iterable[ReproducedRow]) -> str:
    """Two Markdown tables: verdicts of all runs, throughput of the measured ones."""
    found = list(rows)
    lines = [
        "| run | machine | launch | became | planner | right |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        slow = f", slow: {', '.join(row.slow)}" if row.slow else ""
        verdict = f"allowed{slow}" if row.allowed else f"refused: {', '.join(row.broken)}"
        right = "yes" if row.verdict_right else "**no**"
        lines.append(f"| {row.run.id} | {row.run.hardware} | {row.what} | {row.run.outcome} | {verdict} | {right} |")
    n_right = sum(row.verdict_right for row in found)
    lines += ["", f"{n_right} of {len(found)} verdicts right.", ""]
    lines += [
        "| run | role | measured tok/s | predicted | 90 % interval | error | inside |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found:
        if row.tok_per_s is None or row.error_frac is None or row.run.tok_per_s is None:
            continue
        role = "calibration" if row.run.role == "calibrate" else "predicted"
        estimate = row.tok_per_s
        lines.append(
            f"| {row.run.id} | {role} | {row.run.tok_per_s:,.0f} | {estimate.value:,.0f} | "
            f"{estimate.low:,.0f} to {estimate.high:,.0f} | {100 * row.error_frac:+.0f} % | "
            f"{'yes' if row.inside else 'no'} |"
        )
    missing = [f"{row.run.id}: {row.missing}" for row in found if row.missing]
    if missing:
        lines += ["", "Missing measurement:", "", *(f"- {text}" for text in missing)]
    return "\n".join(lines) + "\n"


def reproduction_to_dict(rows: Iterable[ReproducedRow]) -> list[dict[str, Any]]:
    """Plain data of the table."""
    return [
        {
            "id": row.run.id,
            "hardware": row.run.hardware,
            "launch": row.what,
            "outcome": row.run.outcome,
            "ran_well": row.run.ok,
            "allowed": row.allowed,
            "broken": list(row.broken),
            "slow": list(row.slow),
            "verdict_right": row.verdict_right,
            "role": row.run.role or None,
            "measured_tok_per_s": row.run.tok_per_s,
            "predicted_tok_per_s": row.tok_per_s.model_dump(mode="json") if row.tok_per_s is not None else None,
            "error_frac": row.error_frac,
            "inside": row.inside,
            "missing": row.missing,
            "assumed": list(row.run.assumed),
        }
        for row in rows
    ]
