"""Figures. matplotlib is an extra (``plots``): it is imported when a figure is drawn."""

from __future__ import annotations

from pathlib import Path

from planner.domain.fitting import FitReport
from planner.errors import InputError, MissingDataError, Problem

__all__ = ["FORMATS", "check_format", "draw_residuals"]

FORMATS = (".pdf", ".png", ".svg")

_COLOURS = {"off": "tab:blue", "chain": "tab:green", "tree": "tab:orange"}


def check_format(path: Path) -> None:
    """Refuse a name whose ending is no figure format.

    Raises:
        InputError: it is none.
    """
    if path.suffix.lower() not in FORMATS:
        hint = f"one of {', '.join(FORMATS)}"
        raise InputError([Problem("not a figure format", field="--plot", value=str(path), hint=hint)])


def draw_residuals(report: FitReport, path: Path) -> None:
    """Residuals of a fit against running requests, filled: in-sample, hollow: left out with its 90 % interval.

    Raises:
        InputError: the ending is no figure format.
        MissingDataError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    check_format(path)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDataError(
            "a figure needs matplotlib, which is not installed", "pip install plan-config[plots]"
        ) from None
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    band = 100 * 1.645 * report.residual_sd_frac
    axes.axhspan(-band, band, color="0.92", label=f"90 % band, {band:.1f} %")
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    for kind, colour in _COLOURS.items():
        rows = [row for row in report.residuals if row.kind == kind]
        if not rows:
            continue
        at = [row.concurrency for row in rows]
        axes.scatter(at, [100 * row.residual_frac for row in rows], color=colour, s=18, label=f"{kind}, fitted")
        tried = [row for row in rows if row.left_out_s is not None]
        if tried:
            errors = [100 * (row.left_out_frac or 0.0) for row in tried]
            low = [100 * ((row.left_out_s or 0.0) - (row.left_out_low_s or 0.0)) / row.measured_s for row in tried]
            high = [100 * ((row.left_out_high_s or 0.0) - (row.left_out_s or 0.0)) / row.measured_s for row in tried]
            axes.errorbar(
                [1.04 * row.concurrency for row in tried],
                errors,
                yerr=[low, high],
                fmt="o",
                markersize=4,
                markerfacecolor="white",
                color=colour,
                linewidth=0.7,
                label=f"{kind}, left out",
            )
    axes.set_xscale("log", base=2)
    axes.set_xlabel("running requests")
    axes.set_ylabel("(predicted - measured) / measured, %")
    axes.set_title(f"step cost of {report.model} on {report.hardware}", fontsize=10)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120, format=path.suffix.lower().removeprefix("."))
