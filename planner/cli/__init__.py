"""``plan-config``: arguments to the library, its answer to the terminal, its status to the exit code.

Exit codes: 0 done (a safe plan, a clean check, a healthy log), 1 the answer is no (infeasible, findings, a cause),
2 bad input. A bug keeps its traceback.
"""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from planner.cli.options import plan_options, question_from
from planner.errors import PlannerError
from planner.version import __version__

__all__ = ["main"]

_COMMANDS = {
    "accuracy": ("planner.cli.accuracy", "accuracy", "How far the models are off on data they did not see."),
    "bench": ("planner.cli.bench", "bench", "Measure a running server with SGLang's own client."),
    "check": ("planner.cli.check", "check", "Review launch files against what SGLang does with them."),
    "diagnose": ("planner.cli.diagnose", "diagnose", "Name the cause of a failed or slow server from its log."),
    "drafter": ("planner.cli.profiles", "drafter", "Drafter profiles: list, show, validate."),
    "engine": ("planner.cli.engine", "engine", "Flag tables of SGLang versions: list, show, diff, add."),
    "fit": ("planner.cli.fit", "fit", "A calibration from observed runs, with its residuals and domain."),
    "fix": ("planner.cli.fix", "fix", "The smallest change that clears every error of a launch file."),
    "hw": ("planner.cli.profiles", "hw", "Hardware profiles: list, show, validate."),
    "isolate": ("planner.cli.isolate", "isolate", "Which flags of a failing launch cause it."),
    "launch": ("planner.cli.launch", "launch", "Start a plan on a real server, judge it, measure it."),
    "learn": ("planner.cli.learn", "learn", "Proposals for limits from runs, as a diff of TOML."),
    "ledger": ("planner.cli.ledger", "ledger", "Observations of runs: show, diff, export, import."),
    "limits": ("planner.cli.profiles", "limits", "Limits: list, show, validate."),
    "model": ("planner.cli.profiles", "model", "Model profiles: list, show, validate."),
    "predict": ("planner.cli.predict", "predict", "What a given launch would do."),
    "probe": ("planner.cli.probe", "probe", "Narrow a limit's interval by launches."),
    "reproduce": ("planner.cli.reproduce", "reproduce", "The field notes against the planner."),
    "resolve": ("planner.cli.resolve", "resolve", "What was asked against what the engine runs, and why."),
    "rules": ("planner.cli.rules", "rules", "The rules of check, one explained or all listed."),
    "sweep": ("planner.cli.sweep", "sweep", "Launch a plan and what may be better; say what was learned."),
    "upgrade": ("planner.cli.upgrade", "upgrade", "Rewrite a launch file for another SGLang version."),
    "watch": ("planner.cli.watch", "watch", "A running server against its plan, live or as alert rules."),
    "workload": ("planner.cli.workload", "workload", "The workload of a running service, for the planner."),
}
"""Name -> (module, attribute, one line): a command's module is imported when the command runs."""

EXIT_OK, EXIT_NO, EXIT_BAD_INPUT = 0, 1, 2


class LazyGroup(click.Group):
    """Subcommands by name; nothing of them is imported before one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS:
            from planner.errors import nearest_hint

            ctx.fail(f"unknown command {args[0]!r}; {nearest_hint(args[0], sorted(_COMMANDS))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in sorted(_COMMANDS.items())])


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@plan_options
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json", "argv", "env"]))
@click.version_option(version=__version__, prog_name="plan-config")
@click.pass_context
def cli(ctx: click.Context, /, format_: str, **given: Any) -> None:
    """Plan a safe SGLang launch: plan-config --hw b300 --target-c 64"""
    if ctx.invoked_subcommand is not None:
        return
    if given["hw"] is None and given["target_c"] is None:
        click.echo(ctx.get_help())
        ctx.exit(EXIT_OK)
    with _no_garbage_collection():
        from planner.search.planning import make_plan

        plan = make_plan(question_from(given))
        if format_ == "json":
            from planner.render.plan_json import plan_to_dict, render_json

            click.echo(render_json(plan_to_dict(plan)), nl=False)
        elif format_ == "text" or plan.launch is None:
            from planner.render.plan_text import render_plan

            click.echo(render_plan(plan), nl=False, err=format_ != "text")
        else:
            from planner.render.plan_text import render_argv, render_env

            click.echo(render_argv(plan.launches) if format_ == "argv" else render_env(plan.launches), nl=False)
        ctx.exit(EXIT_OK if plan.launch is not None and plan.status.value != "unknown" else EXIT_NO)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A plan takes well under a second and keeps most of what it makes: looking for cycles is a tenth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def main(argv: list[str] | None = None) -> None:
    """Entry point of ``plan-config``."""
    # The interpreter looks for cycles once more before it ends; what is frozen is left to the operating system.
    atexit.register(gc.freeze)
    try:
        cli.main(args=argv, prog_name="plan-config", standalone_mode=True)
    except PlannerError as error:
        for line in str(error).splitlines():
            print(f"plan-config: {line}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EPIPE) or error.filename is not None:
            raise
        # The disk behind our output is full, or its reader is gone: the interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"plan-config: the output could not be written: {error.strerror}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
