"""``plan-config reproduce``: the field notes against the planner."""

from __future__ import annotations

import json

import click

__all__ = ["reproduce"]


@click.command()
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def reproduce(ctx: click.Context, /, format_: str) -> None:
    """Verdict and throughput of FN-01 to FN-18; exit 1 when a verdict is wrong."""
    from planner.render.reproduction import render_reproduction, reproduction_to_dict
    from planner.search.reproduction import reproduce as reproduce_runs

    rows = reproduce_runs()
    if format_ == "json":
        click.echo(json.dumps(reproduction_to_dict(rows), indent=2, ensure_ascii=False))
    else:
        click.echo(render_reproduction(rows), nl=False)
    ctx.exit(0 if all(row.verdict_right for row in rows) else 1)
