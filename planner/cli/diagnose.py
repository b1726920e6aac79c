"""``plan-config diagnose LOG|-``: a log in, the cause out."""

from __future__ import annotations

import json
import sys

import click

__all__ = ["diagnose"]

EXIT_HEALTHY, EXIT_CAUSE = 0, 1


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("log", type=click.Path(path_type=str, allow_dash=True))
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]), help="Form of the answer.")
@click.pass_context
def diagnose(ctx: click.Context, log: str, format_: str) -> None:
    """Name the cause of a failed or slow server from its log (a file, or - for standard input).

    Exit codes: 0 healthy, 1 a cause found (or none that is known), 2 the log cannot be read.
    """
    from planner.diagnose import diagnose_path, diagnose_stream

    diagnosis = diagnose_stream(sys.stdin.buffer, name="standard input") if log == "-" else diagnose_path(log)
    if format_ == "json":
        click.echo(json.dumps(diagnosis.to_json(), indent=2, ensure_ascii=False))
    else:
        from planner.diagnose.report import render_diagnosis

        click.echo(render_diagnosis(diagnosis), nl=False)
    ctx.exit(EXIT_HEALTHY if diagnosis.healthy else EXIT_CAUSE)
