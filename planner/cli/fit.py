"""``plan-config fit OBSERVATIONS... --hw ID --model ID``: a calibration from runs, with its report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from planner.domain import HardwareProfile, ModelProfile
    from planner.errors import Problem
    from planner.search.observed import Observed

__all__ = ["fit"]

_SQLITE = b"SQLite format 3\x00"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="OBSERVATIONS...")
@click.option("--hw", metavar="ID|FILE", help="Hardware that the runs were made on (plan-config hw list).")
@click.option("--model", metavar="ID|FILE|FOLDER", help="Model that they served.")
@click.option("--drafter", metavar="ID|FILE", help="Its draft model: accept lengths are fitted too.")
@click.option("--out", metavar="FILE", help="Write the calibration here, for --calibration [only the report].")
@click.option("--plot", metavar="FILE", help="Draw the residuals (.png, .svg, .pdf; needs the extra plots).")
@click.option("--units-checked", is_flag=True, help="The steps really are that long or short.")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
def fit(
    files: tuple[str, ...],
    hw: str | None,
    model: str | None,
    drafter: str | None,
    out: str | None,
    plot: str | None,
    units_checked: bool,
    format_: str,
) -> None:
    """Fit the step cost to runs: plan-config fit runs.jsonl --hw b300 --model kimi-k2.6 --out my.json

    OBSERVATIONS: ledgers, CSV with a column step_s, JSON lines of rows, of a ledger's export, or of
    sglang.benchmark.serving.
    """
    from planner.data import load_hardware, load_model
    from planner.errors import InputError
    from planner.search.fitting import fit_observed

    problems: list[Problem] = []
    hardware: HardwareProfile | None = _loaded(load_hardware, hw, "--hw", "b300", problems)
    target: ModelProfile | None = _loaded(load_model, model, "--model", "kimi-k2.6", problems)
    _check_targets(files, out, plot, problems)
    entries = _entries(files, problems)
    if problems or hardware is None or target is None:
        raise InputError(problems)
    observed = _observed(entries, hardware, target)
    result = fit_observed(
        observed,
        hardware=hardware,
        model=target,
        drafter=drafter,
        source=", ".join(Path(name).name for name in files),
        units_checked=units_checked,
    )
    notes = [*_drawn(result.report, plot), *_written(result.calibration, out)]
    if format_ == "json":
        from planner.render.fit_report import render_fit_json

        click.echo(render_fit_json(result.report), nl=False)
    else:
        from planner.render.fit_report import render_fit

        click.echo(render_fit(result.report), nl=False)
    for note in notes:
        click.echo(note, err=True)


def _loaded(load: Any, given: str | None, option: str, example: str, problems: list[Problem]) -> Any:
    from planner.errors import InputError, Problem

    if given is None:
        problems.append(Problem("missing", field=option, hint=f"such as {option} {example}"))
        return None
    try:
        return load(given)
    except InputError as error:
        problems.extend(error.problems)
        return None


def _check_targets(files: tuple[str, ...], out: str | None, plot: str | None, problems: list[Problem]) -> None:
    """What is to be written, looked at before anything is computed."""
    from planner.errors import InputError, Problem

    inputs = {os.path.realpath(name) for name in files}
    for option, name in (("--out", out), ("--plot", plot)):
        if name is None:
            continue
        path = Path(name)
        if os.path.realpath(name) in inputs:
            problems.append(Problem("is one of the inputs", field=option, value=name, hint="give another name"))
        elif path.is_dir():
            problems.append(Problem(f"{name} is a folder", field=option, value=name, hint="give a file"))
        elif not path.parent.is_dir():
            text = f"the folder {path.parent} does not exist"
            problems.append(Problem(text, field=option, value=name, hint="make it first"))
    if plot is not None:
        from planner.render.plots import check_format

        try:
            check_format(Path(plot))
        except InputError as error:
            problems.extend(error.problems)


def _entries(files: tuple[str, ...], problems: list[Problem]) -> list[tuple[str, list[Any]]]:
    """What each file holds."""
    from planner.errors import InputError, Problem
    from planner.search.observed import read_observations

    found: list[tuple[str, list[Any]]] = []
    for name in files:
        try:
            with Path(name).open("rb") as stream:
                content = stream.read(len(_SQLITE))
                is_ledger = content == _SQLITE
                content += b"" if is_ledger else stream.read()
            if is_ledger:
                from planner.launch.ledger import Ledger

                with Ledger(Path(name)) as opened:
                    found.append((name, list(opened.each())))
            else:
                found.append((name, list(read_observations(content.decode("utf-8-sig"), name))))
        except InputError as error:
            problems.extend(error.problems)
        except UnicodeDecodeError as error:
            problems.append(
                Problem(f"not UTF-8 text (byte {error.start})", file=name, hint="a ledger, CSV or JSON lines")
            )
        except OSError as error:
            hint = "give ledgers, CSV or JSON lines"
            problems.append(Problem(f"cannot be read: {error.strerror}", file=name, hint=hint))
    return found


def _observed(entries: list[tuple[str, list[Any]]], hardware: HardwareProfile, model: ModelProfile) -> Observed:
    """Rows of all files, each at its place."""
    from planner.domain import Observation
    from planner.errors import InputError, Problem
    from planner.search.observed import Observed, observed_rows

    parts, problems = [], []
    seen: dict[str, str] = {}
    for name, found in entries:
        for entry in found:
            if isinstance(entry, Observation) and seen.setdefault(entry.id, name) != name:
                text = f"observation {entry.id} is in {seen[entry.id]} too"
                hint = "a ledger and its export hold the same runs: give one of them"
                problems.append(Problem(text, file=name, field="id", value=entry.id, hint=hint))
        try:
            parts.append(observed_rows(found, hardware=hardware, model=model, name=name))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems[:20])
    return Observed(
        tuple(row for part in parts for row in part.rows), tuple(text for part in parts for text in part.left_out)
    )


def _drawn(report: Any, plot: str | None) -> list[str]:
    """Draws the figure; without matplotlib says how to get it."""
    if plot is None:
        return []
    from planner.errors import InputError, MissingDataError, Problem
    from planner.render.plots import draw_residuals

    try:
        draw_residuals(report, Path(plot))
    except MissingDataError as error:
        return [f"plan-config: no figure: {error}"]
    except OSError as error:
        raise InputError([Problem(f"cannot be written: {error.strerror}", file=plot, field="--plot")]) from None
    return [f"figure: {plot}"]


def _written(calibration: Any, out: str | None) -> list[str]:
    """Writes the calibration, whole or not at all."""
    if out is None:
        return ["no --out: nothing was written"]
    from planner.errors import InputError, Problem
    from planner.estimate.step_cost import write_calibration
    from planner.launch.writing import write_atomically

    try:
        write_atomically(Path(out), write_calibration(calibration), mode=0o644)
    except OSError as error:
        raise InputError([Problem(f"cannot be written: {error.strerror}", file=out, field="--out")]) from None
    return [f"calibration: {out} (plan-config ... --calibration {out})"]
