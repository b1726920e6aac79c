"""A launch report as text."""

from __future__ import annotations

from planner.launch.verdict import LaunchReport

__all__ = ["render_launch"]


def render_launch(report: LaunchReport) -> str:
    """Verdict first, then the grounds."""
    lines = []
    if report.ok:
        state = "serving and right" if report.serving else "right; stopped"
        lines.append(f"OK: {state} at {report.base_url}" + (f" ({report.detail})" if report.detail else ""))
    else:
        lines.append(f"FAILED: {report.cause} in stage {report.stage}")
        lines.append(f"  {report.detail}")
    if report.diagnosis_cause is not None and report.diagnosis_cause != report.cause:
        lines.append(f"  the log by itself says: {report.diagnosis_cause}")
    lines += [f"  | {line}" for line in report.diagnosis_lines[:6]]
    lines += [f"  try: {remedy}" for remedy in report.remedies]
    for item in report.mismatches:
        lines.append(
            f"  setting {item.field}: {item.actual}, asked {item.expected}" + (f" ({item.note})" if item.note else "")
        )
    if report.canary:
        lines.append("  canary: " + ", ".join(f"{name} {value:g}" for name, value in report.canary))
    for one in report.observations:
        if one.tok_per_s is not None:
            accept = f", accept length {one.accept_len:.2f}" if one.accept_len is not None else ""
            spread = f" +- {one.spread_frac:.1%}" if one.spread_frac is not None else ""
            lines.append(
                f"  C={one.concurrency} context={one.context_tok}: {one.tok_per_s:.1f} tok/s{spread}"
                f" ({one.n_repeats} repeats){accept}"
            )
    lines += [f"  note: {note}" for note in report.notes]
    if report.log is not None:
        lines.append(f"  log: {report.log}")
    return "\n".join(lines) + "\n"
