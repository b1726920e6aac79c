"""Options and parts that ``sweep``, ``probe`` and ``isolate`` share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from planner.cli.options import add_options

if TYPE_CHECKING:
    from planner.domain import Candidate
    from planner.launch.bench import BenchPlan
    from planner.learn.running import LaunchRunner, Subject
    from planner.search.request import Question

__all__ = ["allowed_of", "asked_question", "bench_of", "gpus_of", "run_options", "runner_of"]

_F = TypeVar("_F", bound=Callable[..., Any])

_RUN = (
    click.option("--dir", "folder", type=click.Path(path_type=Path), metavar="DIR",
                 help="Folder of this experiment: logs, journal; the same folder continues it."),
    click.option("--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Record observations there."),
    click.option("--python", metavar="VENV/bin/python", help="Interpreter of the environment that SGLang is in."),
    click.option("--env", "env_", multiple=True, metavar="NAME=VALUE", help="Of every server (repeatable)."),
    click.option("--ready-timeout", default=1800.0, show_default=True, metavar="S"),
    click.option("--call-timeout", default=120.0, show_default=True, metavar="S", help="Of one canary generation."),
    click.option("--no-canary", is_flag=True, help="Do not judge the answers."),
    click.option("--allow", multiple=True, metavar="CODE=REASON", help="Set a blocking finding aside (repeatable)."),
    click.option("--format", "format_", default="text", type=click.Choice(["text", "json"])),
    click.option("--quiet", is_flag=True, help="No progress."),
)  # fmt: skip


def run_options(command: _F) -> _F:
    """Adds the options of everything that launches trials."""
    return add_options(command, _RUN)


def asked_question(plan: Path | None, given: dict[str, Any]) -> tuple[Question, Candidate | None]:
    """The question of a plan file, with its choice, or of the options of a plan.

    Raises:
        InputError: both or neither, or faults in either.
    """
    from dataclasses import replace

    from planner.cli.options import question_from
    from planner.errors import InputError
    from planner.learn.planned import question_of_plan_file

    if plan is not None and (given["hw"] is not None or given["target_c"] is not None):
        raise InputError("give a plan file or the options of a plan (--hw, --target-c), not both")
    if plan is None:
        return question_from(given), None
    question, target = question_of_plan_file(plan)
    lifts = dict(question.lift) | question_lifts(given)
    question = replace(question, lift=lifts, limits=tuple(given["limits"]), calibration=given["calibration"])
    return question, target.expected


def question_lifts(given: dict[str, Any]) -> dict[str, str]:
    """``--lift ID=REASON`` beside a plan file.

    Raises:
        InputError: one without a reason.
    """
    return dict(_pair(text, "--lift", "ID=REASON") for text in given["lift"])


def allowed_of(given: dict[str, Any]) -> tuple[str, ...]:
    """Codes of ``--allow``.

    Raises:
        InputError: one without a reason.
    """
    return tuple(_pair(text, "--allow", "CODE=REASON")[0] for text in given["allow"])


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    from planner.errors import InputError, Problem

    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError([Problem(f"{text!r} is not {form}", field=option, value=text, hint=f"write {option} {form}")])
    return name.strip(), value.strip()


def bench_of(given: dict[str, Any], *, clients: str, context: str) -> BenchPlan:
    """The measurement of each launch."""
    from planner.cli.launch import numbers
    from planner.launch.bench import BenchPlan, matrix

    cells = matrix(
        numbers(given["bench"] or clients, "--bench"),
        numbers(given["bench_context"] or context, "--bench-context"),
        given["bench_output"],
    )
    return BenchPlan(cells=cells, budget_s=given["bench_minutes"] * 60.0)


def gpus_of(hardware: str | None, given: dict[str, Any]) -> int:
    """GPUs that a launch holds, for GPU-hours; 0 where nobody says."""
    from planner.data import load_hardware, packaged_ids

    if given.get("gpus") is not None:
        text = str(given["gpus"])
        if not text.isdigit():
            from planner.errors import InputError, Problem

            raise InputError([Problem("must be a whole number", field="--gpus", value=text)])
        return int(text)
    return load_hardware(hardware).n_gpus if hardware in packaged_ids("hardware") else 0


def runner_of(given: dict[str, Any], subject: Subject, bench: BenchPlan | None) -> LaunchRunner:
    """The runner of an experiment; its folder is made and its ledger opened, so that faults show before a launch.

    Raises:
        InputError: no folder, one that cannot be made, a file that is no ledger.
    """
    from planner.errors import InputError, Problem
    from planner.launch.gate import TimeLimits
    from planner.launch.ledger import Ledger
    from planner.launch.progress import make_ui
    from planner.learn.running import LaunchRunner, check_folder

    folder: Path | None = given["folder"]
    if folder is None:
        raise InputError([Problem("missing", field="--dir", hint="a folder for this experiment, such as --dir sweep1")])
    env = tuple(_pair(text, "--env", "NAME=VALUE") for text in given["env_"])
    if given["ledger"] is not None:
        with Ledger(given["ledger"], create=True):
            pass
    check_folder(folder)
    return LaunchRunner(
        folder=folder / "launches",
        ledger=given["ledger"],
        subject=subject,
        bench=bench,
        python=given["python"],
        env=env,
        limits=TimeLimits(ready_timeout_s=given["ready_timeout"], call_timeout_s=given["call_timeout"]),
        canary=not given["no_canary"],
        ui=make_ui(sys.stderr, quiet=given["quiet"]),
    )
