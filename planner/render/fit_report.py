"""A fit as text: what moved, how well it fits, where it holds."""

from __future__ import annotations

import json

from planner.domain.fitting import AcceptFit, FitParameter, FitReport, FitResidual

__all__ = ["render_fit", "render_fit_json"]

_HALF = 15
_SPAN_FRAC = 0.15
"""The residual plot spans plus and minus this fraction."""
_MAX_ROWS = 60


def render_fit(report: FitReport) -> str:
    """The whole report. Same report, same bytes."""
    drafter = f" + {report.drafter}" if report.drafter else ""
    n_rows = _count(len(report.residuals), "observation")
    lines = [f"FIT  step cost of {report.model}{drafter} on {report.hardware}: {n_rows}"]
    lines.append(f"  from {report.source}; starts from {report.starts_from}")
    lines += [f"  {note}" for note in report.notes]
    lines += [f"  {reason}" for reason in report.left_out]
    lines += ["", f"{'PARAMETERS':<25}{'before':<22}{'after':<22}change in sd"]
    lines += [_parameter(parameter) for parameter in report.parameters]
    lines += ["", *_residuals(report)]
    lines += ["", "DOMAIN  " + ", ".join(f"{span.name} {_span(span.low, span.high)}" for span in report.domain)]
    lines.append(f"        steps: {', '.join(report.kinds)}; layouts: {'; '.join(report.layouts)}")
    lines.append("        outside it intervals are wider; by more than a factor of two a figure is marked extrapolated")
    for curve in report.acceptance:
        lines += ["", *_acceptance(curve)]
    return "\n".join(lines) + "\n"


def render_fit_json(report: FitReport) -> str:
    """The report's fields as JSON, each residual with its error as a fraction."""
    body = report.model_dump(mode="json")
    for entry, residual in zip(body["residuals"], report.residuals, strict=True):
        entry["residual_frac"] = residual.residual_frac
        entry["left_out_frac"] = residual.left_out_frac
    return json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _parameter(parameter: FitParameter) -> str:
    scale, unit = _unit(parameter)
    before = f"{parameter.before * scale:.3g} +- {parameter.before_sd * scale:.2g}{unit}"
    after = f"{parameter.after * scale:.3g} +- {parameter.after_sd * scale:.2g}{unit}"
    moved = (parameter.after - parameter.before) / parameter.before_sd if parameter.before_sd > 0 else 0.0
    return f"  {parameter.name:<23}{before:<22}{after:<22}{moved:+.1f}"


def _unit(parameter: FitParameter) -> tuple[float, str]:
    """Factor and name of the unit shown: seconds in us or ms."""
    if parameter.unit != "s":
        return 1.0, ""
    return (1e3, " ms") if max(parameter.before, parameter.after) >= 1e-4 else (1e6, " us")


def _residuals(report: FitReport) -> list[str]:
    band = 1.645 * report.residual_sd_frac
    worst = max(abs(row.residual_frac) for row in report.residuals)
    inside = sum(abs(row.residual_frac) <= band for row in report.residuals)
    lines = [
        f"RESIDUALS  mean {report.mape:.1%}, largest {worst:.1%}, {inside} of {len(report.residuals)} inside the 90 % "
        f"band of {band:.1%} (the fit has seen them)"
    ]
    if report.left_out_mape is not None and report.left_out_coverage is not None:
        lines.append(
            f"  left out in turn ({report.n_left_out}): mean error {report.left_out_mape:.1%}, "
            f"{report.left_out_coverage:.0%} inside the 90 % interval"
        )
    else:
        lines.append("  one observation: nothing can be left out, the fit is untested")
    edge = f"{_SPAN_FRAC:.0%}"
    lines.append(f"  -{edge:<{_HALF - 1}}0{'+' + edge:>{_HALF}}    fitted  left out   measured")
    shown = report.residuals
    if len(shown) > _MAX_ROWS:
        shown = tuple(sorted(shown, key=lambda row: -abs(row.residual_frac))[:_MAX_ROWS])
        lines.insert(2, f"  the {_MAX_ROWS} farthest off of {len(report.residuals)} (all of them: --format json)")
    lines += [_residual(row) for row in shown]
    return lines


def _residual(row: FitResidual) -> str:
    at = min(max(round(_HALF * (1 + row.residual_frac / _SPAN_FRAC)), 0), 2 * _HALF)
    bar = "".join("*" if i == at else "|" if i == _HALF else "." for i in range(2 * _HALF + 1))
    other = row.left_out_frac
    left_out = "-" if other is None else f"{other:+.1%}" + ("" if row.left_out_inside else "!")
    place = f"  {row.file}:{row.line}" if row.file and row.line else ""
    return f"  {bar} {row.residual_frac:+8.1%} {left_out:>9} {row.measured_s * 1e3:>8.4g} ms  {row.label}{place}"


def _acceptance(curve: AcceptFit) -> list[str]:
    at = "" if curve.temperature is None else f", T={curve.temperature:g}"
    note = f" ({curve.note})" if curve.note else ""
    lines = [f"ACCEPTANCE  {curve.domain}{at}: {_count(len(curve.points), 'point')}{note}"]
    for point in curve.points:
        fitted = f"{point.fitted:.2f} [{point.low:.2f}-{point.high:.2f}]"
        lines.append(f"  {point.kind} {point.budget:>4}: measured {point.measured:.2f}, curve {fitted}")
    return lines


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
