"""``plan-config isolate``: which flags of a failing launch cause it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from planner.cli.experiments import allowed_of, gpus_of, run_options, runner_of

__all__ = ["isolate"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--good", type=click.Path(path_type=Path), metavar="FILE", help="Command line that works.")
@click.option("--bad", type=click.Path(path_type=Path), metavar="FILE", help="Command line that fails.")
@click.option("--hw", metavar="ID", help="Hardware named in observations.")
@click.option("--gpus", metavar="N", help="GPUs that a launch holds, for GPU-hours [those of --hw].")
@click.option("--confirm", default=2, show_default=True, type=click.IntRange(min=1), metavar="N",
              help="Failures in a row before one is believed.")  # fmt: skip
@run_options
@click.pass_context
def isolate(ctx: click.Context, /, **given: Any) -> None:
    """Find the smallest sets of changes that make a launch fail, with a verdict for each change and each pair.

    Each FILE holds one command line (`python -m sglang.launch_server ...`), with NAME=value before it where needed.
    Ports are the same in all launches: that of the launch that works.

    Exit codes: 0 the cause was found, 1 the failure was not reproduced, 2 bad input.
    """
    import json

    from planner.domain import Launch
    from planner.errors import InputError, Problem
    from planner.launch.target import target_from_argv
    from planner.learn.flags import changes_between, read_commands
    from planner.learn.isolate import isolate as search
    from planner.learn.isolating import Judge
    from planner.learn.journal import open_journal
    from planner.learn.report_text import render_isolation
    from planner.learn.running import Subject
    from planner.learn.sweep import cost_of

    problems: list[Problem] = []
    found: dict[str, Launch] = {}
    for option in ("good", "bad"):
        if given[option] is None:
            problems.append(Problem("missing", field=f"--{option}", hint="a file with one command line"))
            continue
        try:
            launches = read_commands(given[option])
            if len(launches) != 1:
                problems.append(Problem(f"{len(launches)} command lines", file=str(given[option]), hint="give one"))
            target_from_argv(launches[0].argv)
            found[option] = launches[0]
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    good, bad = found["good"], found["bad"]
    changes = changes_between(good, bad)
    if not changes:
        raise InputError("the two launches do not differ in anything that counts", "give a launch that works")
    subject = Subject(hardware=given["hw"] or "unknown", allowed=allowed_of(given))
    n_gpus = gpus_of(given["hw"], given)
    runner = runner_of(given, subject, None)
    runner.review = False
    header = {"kind": "isolate", "good": list(good.argv), "bad": list(bad.argv), "hardware": subject.hardware}
    try:
        with open_journal(given["folder"] / "journal.jsonl", header=header) as journal:
            judge = Judge(good, changes, journal.replay(runner), confirm=given["confirm"])
            result = search(list(changes), judge.passes)
            cost = cost_of(journal, n_gpus=n_gpus)
    finally:
        runner.ui.close()
    shown = {name: change.shown for name, change in changes.items()}
    if given["format_"] == "json":
        body = {"changes": shown, "cause": judge.cause, "notes": judge.notes, "cost": cost.model_dump(mode="json")}
        click.echo(json.dumps(body | result.model_dump(mode="json"), indent=2))
    else:
        click.echo(render_isolation(result, shown, judge.notes, cost), nl=False)
    ctx.exit(0 if result.causes else 1)
