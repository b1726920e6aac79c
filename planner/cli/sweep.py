"""``plan-config sweep``: launches in the order that teaches most, one knob at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli.experiments import allowed_of, asked_question, bench_of, gpus_of, run_options, runner_of
from planner.cli.options import plan_options

if TYPE_CHECKING:
    from planner.launch.bench import BenchPlan
    from planner.learn.journal import Journal
    from planner.learn.order import Choice, Pool
    from planner.learn.running import LaunchRunner, Subject
    from planner.learn.sweep import SweepReport
    from planner.learn.trial import Trial

__all__ = ["sweep"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("plan", required=False, type=click.Path(path_type=Path))
@plan_options
@click.option("--list", "list_", type=click.Path(path_type=Path), metavar="FILE", help="Command lines, one a line.")
@click.option("--budget-minutes", type=click.FloatRange(min=0.1), metavar="N", help="Minutes of launches in all.")
@click.option("--max-launches", type=click.IntRange(min=1), metavar="N", help="Launches in all.")
@click.option("--many-knobs", is_flag=True, help="More than one knob may change at a time.")
@click.option("--most", default=200, show_default=True, type=click.IntRange(min=1), metavar="N",
              help="Candidates that are looked at.")  # fmt: skip
@click.option("--keep", default=0.5, show_default=True, type=click.FloatRange(0.0, 1.0), metavar="FRAC",
              help="Candidates predicted below this share of the best are left out.")  # fmt: skip
@click.option("--launch-minutes", default=9.0, show_default=True, type=click.FloatRange(min=0.01), metavar="N",
              help="What a launch of --list takes, for the budget.")  # fmt: skip
@click.option("--ray", metavar="ADDRESS", help="On every node of this Ray cluster (extra ray).")
@click.option("--bench", metavar="C[,C...]", help="Measure at these concurrencies; the last one ranks [target].")
@click.option("--bench-context", metavar="TOK[,TOK...]", help="[that of the plan; 1024 with --list]")
@click.option("--bench-output", default=256, show_default=True, type=click.IntRange(min=1), metavar="TOK")
@click.option("--bench-minutes", default=2.0, show_default=True, type=click.FloatRange(min=0.05), metavar="MIN")
@run_options
@click.pass_context
def sweep(ctx: click.Context, /, plan: Path | None, **given: Any) -> None:
    """Launch the plan and what may be better, measure each, and say what was learned.

    PLAN is the JSON of `plan-config ... --format json`. Without it give the options of a plan, or --list FILE.

    Exit codes: 0 a launch ran well, 1 none did, 2 bad input.
    """
    report, first = run_sweep(plan, given)
    if given["format_"] == "json":
        click.echo(report.model_dump_json(indent=2))
    else:
        from planner.learn.report_text import render_sweep

        click.echo(render_sweep(report, first=first), nl=False)
    ctx.exit(0 if report.best is not None else 1)


def run_sweep(plan: Path | None, given: dict[str, Any]) -> tuple[SweepReport, str]:
    """Everything but printing: the report, and the id of the plan's trial.

    Raises:
        PlannerError: bad input, found before anything was started.
    """
    from planner.errors import InputError, Problem
    from planner.learn.journal import open_journal
    from planner.learn.running import ExperimentStopped
    from planner.learn.sweep import report_of
    from planner.learn.sweep import sweep as run

    notes: list[str] = []
    pool, first, subject, bench, n_gpus = _listed(given) if given["list_"] is not None else _planned(plan, given, notes)
    runner = runner_of(given, subject, bench)
    header = {"kind": "sweep", "hardware": subject.hardware, "model": subject.model, "cells": str(bench.cells)}

    def say(choice: Choice, trial: Trial) -> None:
        knobs = ", ".join(f"{name}={value}" for name, value in trial.knobs)
        runner.ui.say(f"trial {trial.id} ({choice.why}): {knobs}")

    with open_journal(given["folder"] / "journal.jsonl", header=header) as journal:
        try:
            if given["ray"] is not None:
                report = _on_ray(pool, runner, journal, given, n_gpus=n_gpus, first=first)
            else:
                report = run(
                    pool,
                    runner,
                    journal,
                    n_gpus=n_gpus,
                    first=first,
                    one_knob=not given["many_knobs"],
                    budget_minutes=given["budget_minutes"],
                    max_launches=given["max_launches"],
                    say=say,
                )
        except ExperimentStopped as error:
            report = report_of(journal, n_gpus=n_gpus, why=str(error))
        finally:
            runner.ui.close()
    if report.cost.n_launches == 0 and report.tried:
        refused = list(dict.fromkeys(result.detail for one in report.tried for result in one.results))
        raise InputError([Problem(f"nothing was launched: {text}") for text in refused[:5]])
    return report.replace(notes=tuple(notes)), first.id


def _planned(plan: Path | None, given: dict[str, Any], notes: list[str]) -> tuple[Pool, Trial, Subject, BenchPlan, int]:
    """A sweep around a plan."""
    from dataclasses import replace

    from planner.learn.planned import plan_base

    planned = plan_base(*asked_question(plan, given))
    pool, first = planned.pool(most=given["most"], keep_frac=given["keep"])
    if first.candidate != planned.base:
        servers = f" of {planned.base.replicas} servers" if planned.base.replicas > 1 else ""
        notes.append(f"a trial is one server: trial {first.id}, the nearest to the plan{servers}, stands for it")
    workload = planned.subject.workload
    subject = planned.run_subject()
    subject = replace(subject, allowed=(*subject.allowed, *allowed_of(given)))
    bench = bench_of(given, clients=str(workload.target_c), context=str(workload.context_tok))
    return pool, first, subject, bench, planned.subject.n_gpus


def _listed(given: dict[str, Any]) -> tuple[Pool, Trial, Subject, BenchPlan, int]:
    """A sweep over command lines."""
    from planner.errors import InputError
    from planner.launch.target import target_from_argv
    from planner.learn.flags import read_commands
    from planner.learn.pool import pool_of_launches
    from planner.learn.running import Subject

    if given["target_c"] is not None:
        raise InputError("give --list or the options of a plan, not both", "--hw may stand beside --list as a name")
    launches = read_commands(given["list_"])
    for launch in launches:
        target_from_argv(launch.argv)
    pool = pool_of_launches(launches, minutes=given["launch_minutes"])
    subject = Subject(
        hardware=given["hw"] or "unknown", allowed=allowed_of(given), engine_version=given["engine_version"]
    )
    bench = bench_of(given, clients="8", context="1024")
    return pool, pool.trials[0], subject, bench, gpus_of(given["hw"], given)


def _on_ray(
    pool: Pool, runner: LaunchRunner, journal: Journal, given: dict[str, Any], *, n_gpus: int, first: Trial
) -> SweepReport:
    """One trial a node at a time. The folder must be the same path on every node; ledger and journal are here."""
    from dataclasses import replace

    from planner.errors import InputError, MissingDataError
    from planner.learn.many_hosts import HostRun, RayHosts, ledger_recorder, sweep_hosts

    try:
        import ray
    except ImportError:
        raise MissingDataError("Ray is not installed", "pip install 'plan-config[ray]'") from None
    try:
        ray.init(address=None if given["ray"] == "local" else given["ray"], log_to_driver=False)
    except (ConnectionError, ValueError) as error:
        raise InputError(f"no Ray cluster at {given['ray']}: {error}", "start one with `ray start --head`") from None
    try:
        from planner.launch.progress import SilentUi

        remote = replace(runner, ledger=None, ui=SilentUi())
        return sweep_hosts(
            pool,
            RayHosts(HostRun(remote)),
            journal,
            record=ledger_recorder(given["ledger"]) if given["ledger"] is not None else None,
            n_gpus=n_gpus,
            first=first,
            one_knob=not given["many_knobs"],
            budget_minutes=given["budget_minutes"],
            max_launches=given["max_launches"],
            say=lambda host, choice, trial: runner.ui.say(f"{host}: trial {trial.id} ({choice.why})"),
        )
    finally:
        ray.shutdown()
