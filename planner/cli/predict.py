"""``plan-config predict --hw ... --target-c ... -- ARGV``: what a given launch would do."""

from __future__ import annotations

from typing import Any

import click

from planner.cli.options import plan_options, question_from

__all__ = ["predict"]


@click.command(context_settings={"ignore_unknown_options": False})
@plan_options
@click.option("--accept-len", metavar="TOKENS", help="Accept length measured on this traffic (with the bonus token).")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
@click.argument("argv", nargs=-1, required=True)
def predict(argv: tuple[str, ...], accept_len: str | None, format_: str, **given: Any) -> None:
    """Predict a launch: plan-config predict --hw b300 --target-c 64 -- python -m sglang.launch_server ..."""
    from planner.engine.argv import split_program
    from planner.errors import InputError, Problem
    from planner.search.predicting import make_prediction

    question = question_from(given)
    accepted = None
    if accept_len is not None:
        try:
            accepted = float(accept_len)
        except ValueError:
            accepted = 0.0
        if not 1 <= accepted <= 100:
            message = f"must be a number of 1 or more (got {accept_len!r})"
            raise InputError([Problem(message, field="--accept-len", hint="tokens per verify step, bonus included")])
    prediction = make_prediction(question, split_program(argv)[1], accept_len=accepted)
    if format_ == "json":
        from planner.render.plan_json import prediction_to_dict, render_json

        click.echo(render_json(prediction_to_dict(prediction)), nl=False)
    else:
        from planner.render.plan_text import render_prediction

        click.echo(render_prediction(prediction), nl=False)
