"""``plan-config accuracy``: the models on data that they did not see."""

from __future__ import annotations

import click

__all__ = ["accuracy"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
def accuracy(format_: str) -> None:
    """Leave-out errors of acceptance and step cost, computed now from the measurements that ship."""
    from planner.render.accuracy import accuracy_json, accuracy_text
    from planner.search.accuracy import accuracy as computed

    rows = computed()
    click.echo(accuracy_json(rows) if format_ == "json" else accuracy_text(rows), nl=False)
