"""``plan-config ledger show|diff|export|import``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli.options import add_options

if TYPE_CHECKING:
    from planner.domain import Observation
    from planner.launch.ledger import Filter

__all__ = ["ledger"]

_FILE = click.argument("ledger_file", metavar="LEDGER", type=click.Path(path_type=Path))
_FILTERS = (
    click.option("--hardware", metavar="ID", help="Only this hardware."),
    click.option("--model", metavar="ID", help="Only this model."),
    click.option("--engine-version", metavar="VERSION", help="Only this engine version."),
    click.option("--cause", metavar="SLUG", help="Only this outcome (ok, or a cause)."),
)


def _filtered(command: Any) -> Any:
    return add_options(command, _FILTERS)


def _filter(given: dict[str, Any]) -> Filter:
    from planner.launch.ledger import Filter

    return Filter(**{name: given[name] for name in ("hardware", "model", "engine_version", "cause")})


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def ledger() -> None:
    """Observations: what was launched, what ran, what came out."""


@ledger.command()
@_FILE
@_filtered
@click.option("--last", default=20, show_default=True, type=click.IntRange(min=0), metavar="N")
@click.option("--id", "id_", metavar="ID", help="One observation in full.")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
def show(ledger_file: Path, last: int, id_: str | None, format_: str, **given: Any) -> None:
    """Counts by place and cause, and the newest observations."""
    import json

    from planner.launch.ledger import Ledger

    with Ledger(ledger_file) as opened:
        if id_ is not None:
            click.echo(opened.get(id_).model_dump_json(indent=2, exclude_defaults=True))
            return
        chosen = _filter(given)
        totals, newest = opened.totals(chosen), opened.last(last, chosen)
    if format_ == "json":
        from dataclasses import asdict

        body = {
            "totals": [asdict(row) for row in totals],
            "observations": [one.model_dump(mode="json", exclude_defaults=True) for one in newest],
        }
        click.echo(json.dumps(body, indent=2))
        return
    click.echo(f"{sum(row.n for row in totals)} observations")
    for row in totals:
        best = f"  best {row.best_tok_per_s:.1f} tok/s" if row.best_tok_per_s is not None else ""
        click.echo(f"  {row.hardware}  {row.model}  {row.engine_version}  {row.cause}: {row.n}{best}")
    for one in newest:
        click.echo(_line(one))


def _line(one: Observation) -> str:
    figures = [f"C={one.concurrency}"] if one.concurrency is not None else []
    if one.tok_per_s is not None:
        figures.append(f"{one.tok_per_s:.1f} tok/s")
    if one.accept_len is not None:
        figures.append(f"accept {one.accept_len:.2f}")
    return f"{one.id}  {one.recorded_at or '-'}  {one.hardware}  {one.outcome.cause}  {' '.join(figures)}"


@ledger.command()
@_FILE
@click.argument("a")
@click.argument("b")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
def diff(ledger_file: Path, a: str, b: str, format_: str) -> None:
    """What differs between the observations A and B (ids), settings before figures."""
    import json

    from planner.launch.ledger import Ledger
    from planner.launch.ledger.compare import compare

    with Ledger(ledger_file) as opened:
        found = compare(opened.get(a), opened.get(b))
    if format_ == "json":
        from dataclasses import asdict

        click.echo(json.dumps([asdict(one) for one in found], indent=2))
        return
    for one in found:
        change = f"  ({one.change_frac:+.1%})" if one.change_frac is not None else ""
        noise = "  within the spread of the repeats" if one.within_spread else ""
        click.echo(f"{one.part:<9} {one.name}: {one.a or '-'} -> {one.b or '-'}{change}{noise}")


@ledger.command()
@_FILE
@_filtered
@click.option("--form", default="jsonl", show_default=True, type=click.Choice(["jsonl", "csv", "parquet"]))
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="[standard output]")
def export(ledger_file: Path, form: str, out: Path | None, **given: Any) -> None:
    """Write observations as JSON lines, CSV or Parquet."""
    from planner.launch.ledger import Ledger
    from planner.launch.ledger.exchange import ExportForm
    from planner.launch.ledger.exchange import export as write

    with Ledger(ledger_file) as opened:
        n = write(opened.each(_filter(given)), ExportForm(form), out if out is not None else sys.stdout)
    click.echo(f"{n} observations", err=True)


@ledger.command(name="import")
@_FILE
@click.argument("source", type=click.Path(path_type=Path))
def import_(ledger_file: Path, source: Path) -> None:
    """Add the observations of a JSON-lines file; those that are there already are left out."""
    from planner.errors import InputError, Problem
    from planner.launch.ledger import Ledger
    from planner.launch.ledger.exchange import read_jsonl

    try:
        with source.open(encoding="utf-8") as stream:
            observations = read_jsonl(stream, name=str(source))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(f"cannot be read: {error}", file=str(source))]) from None
    with Ledger(ledger_file, create=True) as opened:
        n = opened.append(observations, skip_known=True)
    click.echo(f"{n} added, {len(observations) - n} were there")
