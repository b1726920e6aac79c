"""``plan-config upgrade FILE --to VERSION``: a launch carried to another engine version."""

from __future__ import annotations

from typing import Any

import click

from planner.cli.check import load_given, parse_whole, subject_options, write_or_show

__all__ = ["upgrade"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file")
@click.option("--to", required=True, metavar="VERSION", help="Release to carry the launch to.")
@subject_options
@click.option("--write", is_flag=True, help="Write the file instead of printing a diff.")
@click.pass_context
def upgrade(ctx: click.Context, /, file: str, to: str, write: bool, **given: Any) -> None:
    """Rewrite renamed and removed flags for another engine version, and show what changes in effect.

    Exit codes: 0 done, 1 a flag is left that the version does not take, 2 the file cannot be read.
    """
    from planner.review.files import load_settings
    from planner.review.upgrading import effect_lines
    from planner.review.upgrading import upgrade as carry

    settings = load_settings(given.pop("config"))
    subject, _, form = load_given(given, settings)
    parsed = parse_whole(file, form)
    done = carry(parsed, to, subject=subject)
    write_or_show(file, before=parsed.text, after=done.text, diff=done.diff, write=write)
    for one in done.rewritten:
        click.echo(f"line {one.line}: {one.message}" + ("" if one.safe else " (needs a look)"), err=True)
    for text in (*effect_lines(done.effects), *done.notes):
        click.echo(text, err=True)
    for text in done.left:
        click.echo(f"left: {text}", err=True)
    ctx.exit(1 if done.left else 0)
