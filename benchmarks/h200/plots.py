"""Figures of the page: predicted against measured, residuals, crossover, acceptance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from analysis import Cell
    from matplotlib.figure import Figure

    from planner.domain import Estimate

__all__ = ["acceptance_figure", "crossover_figure", "predicted_figure", "residual_figure", "save"]

COLOURS = {"off": "#4c566a", "chain": "#0b7a75", "tree": "#c8553d"}
MARKERS = {512: "o", 2048: "s", 8192: "^"}


def _figure(width: float, height: float, columns: int = 1) -> tuple[Figure, Any]:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "h200", "svg.fonttype": "none", "font.size": 9, "axes.grid": True})
    matplotlib.rcParams.update({"grid.alpha": 0.25, "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot

    return pyplot.subplots(1, columns, figsize=(width, height), layout="constrained")


TICKS = {"concurrency": (1, 4, 16, 64, 256), "q_len": (1, 5, 9, 17, 33), "prompt_tok": (512, 2048, 8192)}


def _ticks(axis: Any, places: Sequence[int]) -> None:
    """A logarithmic axis with these plain numbers."""
    from matplotlib.ticker import NullFormatter, NullLocator

    axis.set_xscale("log")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xticks(places, [str(place) for place in places])


def predicted_figure(groups: Mapping[str, tuple[Sequence[Cell], Sequence[Estimate], Sequence[int]]]) -> Figure:
    """Predicted against measured step, one panel a model; calibration cells hollow; bars are 90 % intervals."""
    figure, axes = _figure(9.0, 4.2, len(groups))
    for axis, (name, (cells, estimates, known)) in zip(np.atleast_1d(axes), groups.items(), strict=True):
        for position, (cell, estimate) in enumerate(zip(cells, estimates, strict=True)):
            x, y = 1e3 * cell.step_s, 1e3 * estimate.value
            colour = COLOURS[cell.kind]
            axis.plot([x, x], [1e3 * estimate.low, 1e3 * estimate.high], color=colour, alpha=0.25, lw=1)
            face = "none" if position in known else colour
            axis.plot(x, y, MARKERS[cell.prompt_tok], ms=5, mec=colour, mfc=face, mew=1)
        span = [1e3 * min(c.step_s for c in cells) / 1.3, 1e3 * max(c.step_s for c in cells) * 1.3]
        axis.plot(span, span, color="black", lw=0.8)
        axis.set(xscale="log", yscale="log", xlim=span, ylim=span, title=name)
        axis.set(xlabel="measured step (ms)", ylabel="predicted step (ms)")
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], marker="o", ls="", color=colour, label=kind) for kind, colour in COLOURS.items()]
    handles += [Line2D([], [], marker=m, ls="", color="grey", label=f"{c} tokens") for c, m in MARKERS.items()]
    handles.append(Line2D([], [], marker="o", ls="", mec="grey", mfc="none", label="calibration cell"))
    np.atleast_1d(axes)[0].legend(handles=handles, fontsize=7)
    return figure


def residual_figure(cells: Sequence[Cell], estimates: Sequence[Estimate], known: Sequence[int], title: str) -> Figure:
    """Relative error of the predicted cells against concurrency, q_len and context."""
    figure, axes = _figure(9.0, 3.0, 3)
    rest = [i for i in range(len(cells)) if i not in known]
    names = (("concurrency", "concurrency"), ("q_len", "q_len"), ("prompt_tok", "prompt tokens"))
    for axis, (field, label) in zip(axes, names, strict=True):
        for i in rest:
            error = 100 * (estimates[i].value / cells[i].step_s - 1)
            colour = COLOURS[cells[i].kind]
            axis.plot(
                getattr(cells[i], field), error, "o", ms=4, color=colour, mfc=colour if cells[i].graph else "none"
            )
        axis.axhline(0, color="black", lw=0.8)
        _ticks(axis, TICKS[field])
        axis.set(xlabel=label)
    axes[0].set(ylabel="predicted / measured - 1 (%)")
    axes[1].set(title=title)
    return figure


def crossover_figure(
    cells: Sequence[Cell],
    estimates: Sequence[Estimate],
    curve: Mapping[tuple[str, int], float],
    contexts: Sequence[int],
) -> Figure:
    """Tokens per second against concurrency: measured points and predicted lines, one panel a context."""
    figure, axes = _figure(9.5, 3.4, len(contexts))
    shades = {("off", 1): "#4c566a", ("chain", 5): "#0b7a75", ("tree", 9): "#c8553d", ("tree", 33): "#e0a458"}
    for axis, context in zip(axes, contexts, strict=True):
        for option, colour in shades.items():
            here = [
                (c.concurrency, curve[option] * c.concurrency / c.step_s, curve[option] * c.concurrency / e.value)
                for c, e in zip(cells, estimates, strict=True)
                if c.graph and (c.kind, c.q_len) == option and c.prompt_tok == context and c.usual_depth
            ]
            if not here:
                continue
            size, measured, predicted = zip(*sorted(here), strict=True)
            label = option[0] if option[1] == 1 else f"{option[0]}, q_len {option[1]}"
            axis.plot(size, measured, "o", color=colour, ms=5, label=label)
            axis.plot(size, predicted, "-", color=colour, lw=1.2)
        _ticks(axis, TICKS["concurrency"])
        axis.set(yscale="log", xlabel="concurrency", title=f"{context} prompt tokens")
    axes[0].set(ylabel="tokens per second")
    axes[0].legend(fontsize=7)
    return figure


def acceptance_figure(
    points: Sequence[Mapping[str, Any]],
    fits: Mapping[int, Sequence[tuple[int, Estimate]]],
    exact: Sequence[tuple[Mapping[str, Any], Estimate]],
) -> Figure:
    """Accept length against budget: served, one-point fit with its interval, exact mode."""
    figure, axes = _figure(8.5, 3.4, len(fits))
    for axis, (topk, curve) in zip(axes, fits.items(), strict=True):
        budgets = [budget for budget, _ in curve]
        axis.fill_between(budgets, [e.low for _, e in curve], [e.high for _, e in curve], alpha=0.2, color="#c8553d")
        axis.plot(budgets, [e.value for _, e in curve], "-", color="#c8553d", label="fit of budget 8 alone, 90 %")
        own = [p for p in points if p["kind"] == "tree" and p["topk"] == topk]
        axis.plot([p["budget"] for p in own], [p["accept_len"] for p in own], "ko", ms=5, label="served")
        logged = [(p, e) for p, e in exact if p["kind"] == "tree" and p["topk"] == topk]
        axis.plot(
            [p["budget"] for p, _ in logged], [e.value for _, e in logged], "x", color="#0b7a75", label="exact mode"
        )
        _ticks(axis, (4, 8, 16, 32, 64))
        axis.set(xlabel="budget (draft nodes)", title=f"topk {topk}")
    axes[0].set(ylabel="accept length")
    axes[0].legend(fontsize=7)
    return figure


def save(figure: Figure, path: Path) -> None:
    """As SVG without a date, so that the same figure is the same file."""
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
