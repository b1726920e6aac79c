"""``plan-config engine add|list|show|diff``: what the parser of each known SGLang version accepts."""

from __future__ import annotations

import click

__all__ = ["engine"]


@click.group("engine")
def engine() -> None:
    """Flag tables by SGLang version."""


@engine.command("list")
def list_versions() -> None:
    """Versions with a flag table."""
    from planner.data.engine.store import flag_table_names
    from planner.engine.flags import flag_table, flag_versions
    from planner.engine.version import RULE_SETS

    origin = flag_table_names()
    for version in flag_versions():
        table = flag_table(version)
        rules = "resolution rules" if version in RULE_SETS else ""
        click.echo(
            f"{version:<14} {table.released}  {len(table.flags):>3} flags  {origin[version]:<8}  {rules}".rstrip()
        )


@engine.command("show")
@click.argument("version")
@click.option("--flag", help="Only the flags whose name contains this.")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
def show(version: str, flag: str | None, format_: str) -> None:
    """Flags of a version (a release, an image tag or a month)."""
    from planner.engine.flags import flag_table
    from planner.engine.version import parse_engine_version
    from planner.render.engine import render_table, table_json

    resolved = parse_engine_version(version)
    table = flag_table(resolved.table)
    for note in resolved.notes:
        click.echo(note, err=True)
    click.echo(table_json(table, flag) if format_ == "json" else render_table(table, flag), nl=False)


@engine.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
def diff(old: str, new: str, format_: str) -> None:
    """What changed between two versions: added, removed, renamed, deprecated, defaults, choices."""
    from planner.engine.flag_diff import diff_tables
    from planner.engine.flags import flag_table
    from planner.engine.version import parse_engine_version
    from planner.render.engine import diff_json, render_diff

    changes = diff_tables(flag_table(parse_engine_version(old).table), flag_table(parse_engine_version(new).table))
    click.echo(diff_json(changes) if format_ == "json" else render_diff(changes), nl=False)


@engine.command("add")
@click.argument("wheel", type=click.Path(dir_okay=False))
@click.option("--folder", type=click.Path(file_okay=False), help="Where to keep it; default: the user's data folder.")
def add(wheel: str, folder: str | None) -> None:
    """Make the flag table of a wheel (nothing of the wheel is run)."""
    from pathlib import Path

    from planner.engine.flags import add_wheel

    table, path = add_wheel(Path(wheel), Path(folder) if folder is not None else None)
    click.echo(f"SGLang {table.version} of {table.released}: {len(table.flags)} flags, {path}")
