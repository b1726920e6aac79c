"""``plan-config learn``: observations to proposals, as a diff of TOML for review."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from planner.domain import Limit, Observation
    from planner.learn.lessons import Lessons

__all__ = ["learn"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("ledger_file", required=False, metavar="LEDGER", type=click.Path(path_type=Path))
@click.option("--field-notes", is_flag=True, help="From the packaged field notes instead of a ledger.")
@click.option("--hardware", metavar="ID", help="Only this hardware.")
@click.option("--model", metavar="ID", help="Only this model.")
@click.option("--engine-version", metavar="VERSION", help="Only this engine version.")
@click.option("--limits", "limits_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Limit file to amend [a new one].")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the amended limits here.")
@click.option("--fit", "fit_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Fit a calibration to the timed runs and write it here.")  # fmt: skip
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
def learn(ledger_file: Path | None, field_notes: bool, **given: Any) -> None:
    """Propose limits from runs: new ones, intervals that moved, faults that a version mended.

    Nothing is applied: read the diff, write it with --out, and plan with --limits FILE.

    Exit codes: 0 (also when nothing is proposed), 2 bad input.
    """
    from planner.errors import InputError

    if (ledger_file is None) == (not field_notes):
        raise InputError("give a ledger or --field-notes", "plan-config learn runs.db")
    if field_notes and given["fit_file"] is not None:
        raise InputError("--fit needs the runs of a ledger", "the packaged calibration is that of the field notes")
    base, known = _base(given["limits_file"], builtin=not field_notes)
    _check_out(given, ledger_file)
    observations: list[Observation] = []
    if field_notes:
        lessons = _from_field_notes(known, given)
    else:
        assert ledger_file is not None
        observations = _read_ledger(ledger_file, given)
        lessons = _from_observations(observations, known, name=str(ledger_file))
    _answer(lessons, base, observations, given)


def _base(path: Path | None, *, builtin: bool) -> tuple[str, tuple[Limit, ...]]:
    """Text of the file that is amended, and the limits that are known.

    Raises:
        InputError: faults in the file.
    """
    from planner.data import load_limits, read_limits

    if path is None:
        return "", load_limits(()) if builtin else ()
    own = read_limits(path)
    known = load_limits((path,)) if builtin else own
    return path.read_text(encoding="utf-8"), known


def _check_out(given: dict[str, Any], ledger_file: Path | None) -> None:
    from planner.errors import InputError, Problem

    problems = []
    for option, path in (("--out", given["out"]), ("--fit", given["fit_file"])):
        if path is None:
            continue
        if path.is_dir() or not path.parent.is_dir():
            problems.append(Problem("no place for a file", field=option, value=str(path), hint="make its folder first"))
        elif ledger_file is not None and path.exists() and path.samefile(ledger_file):
            problems.append(Problem("is the ledger", field=option, value=str(path), hint="give another name"))
        elif path.exists() and not (given["limits_file"] is not None and path.samefile(given["limits_file"])):
            problems.append(
                Problem("exists", field=option, value=str(path), hint="amend it with --limits, or remove it")
            )
    if problems:
        raise InputError(problems)


def _read_ledger(path: Path, given: dict[str, Any]) -> list[Observation]:
    from planner.launch.ledger import Filter, Ledger

    chosen = Filter(**{name: given[name] for name in ("hardware", "model", "engine_version")})
    with Ledger(path) as opened:
        return list(opened.each(chosen))


def _from_observations(observations: list[Observation], known: tuple[Limit, ...], *, name: str) -> Lessons:
    from planner.data import load_hardware, load_model
    from planner.learn.evidence import check_one_place, runs_of_observations
    from planner.learn.lessons import learn_from

    hardware_id, model_id = check_one_place(observations, name=name)
    hardware, model = load_hardware(hardware_id), load_model(model_id)
    evidenced = runs_of_observations(observations, hardware=hardware, model=model)
    return learn_from(evidenced.runs, known, hardware=hardware, model=model, left_out=evidenced.left_out)


def _from_field_notes(known: tuple[Limit, ...], given: dict[str, Any]) -> Lessons:
    from planner.data import load_hardware, load_model
    from planner.data.field_notes import field_runs
    from planner.learn.evidence import runs_of_field_notes
    from planner.learn.lessons import learn_from

    hardware = load_hardware(given["hardware"] or "b300")
    model = load_model(given["model"] or "kimi-k2.6")
    evidenced = runs_of_field_notes(field_runs(), hardware=hardware.id)
    return learn_from(evidenced.runs, known, hardware=hardware, model=model)


def _answer(lessons: Lessons, base: str, observations: list[Observation], given: dict[str, Any]) -> None:
    import json

    from planner.launch.writing import write_atomically
    from planner.learn.proposal_files import amended_text, diff_of

    path: Path | None = given["out"] or given["limits_file"]
    after = base if lessons.empty else amended_text(base, lessons.proposals.limits, lessons.revised.revisions)
    diff = diff_of(base, after, name=path.name if path is not None else "limits.toml")
    calibration = _calibration(observations, given) if given["fit_file"] is not None else None
    notes: list[str] = []
    if given["out"] is not None and not lessons.empty:
        write_atomically(given["out"], after, mode=0o644)
        notes.append(f"written: {given['out']} (plan-config ... --limits {given['out']})")
    elif given["out"] is not None:
        notes.append("nothing is proposed: nothing was written")
    if calibration is not None:
        write_atomically(given["fit_file"], calibration[0], mode=0o644)
        notes.append(f"{calibration[1]}; written: {given['fit_file']} (plan-config ... --calibration FILE)")
    if given["format_"] == "json":
        body = {
            "lines": lessons.lines(),
            "limits": [limit.model_dump(mode="json") for limit in lessons.proposals.limits],
            "revised": [
                {"why": list(one.why), "limit": one.after.model_dump(mode="json")} for one in lessons.revised.revisions
            ],
            "diff": diff,
            "notes": notes,
        }
        click.echo(json.dumps(body, indent=2, ensure_ascii=False))
        return
    for line in lessons.lines():
        click.echo(line)
    if diff:
        click.echo("\n" + diff, nl=False)
    for note in notes:
        click.echo(note, err=True)


def _calibration(observations: list[Observation], given: dict[str, Any]) -> tuple[str, str]:
    """Text of the calibration and one line about it."""
    from planner.errors import InputError
    from planner.estimate.step_cost import write_calibration
    from planner.search.fitting import fit

    timed = [one for one in observations if one.outcome.ok and one.tok_per_s is not None]
    if not timed:
        raise InputError("no timed run to fit a calibration to", "measure with `sweep` or `launch --bench`")
    drafters = {one.drafter for one in timed}
    result = fit(
        timed,
        hw=timed[0].hardware,
        model=timed[0].model,
        drafter=drafters.pop() if len(drafters) == 1 else None,
        source=f"{len(timed)} observations of {timed[0].hardware}",
    )
    return write_calibration(
        result.calibration
    ), f"calibration from {len(timed)} timed runs, mean error {result.report.mape:.1%}"
