"""``plan-config workload``: the traffic of a running service, in the planner's words."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["workload"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--from-metrics", metavar="URL", help="Counters of a running service.")
@click.option("--from-log", type=click.Path(path_type=Path), metavar="FILE", help="A server's log.")
@click.option("--seconds", default=10.0, show_default=True, metavar="S", help="How long to read a service.")
@click.option("--api-key", metavar="KEY")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json", "argv"]))
def workload(
    from_metrics: str | None, from_log: Path | None, seconds: float, api_key: str | None, format_: str
) -> None:
    """Derive concurrency, lengths and prefix hits, for `plan-config --hw ...`."""
    import json

    from planner.errors import InputError
    from planner.launch import workload_of
    from planner.launch.bench_run import check_url
    from planner.launch.client import run

    if (from_metrics is None) == (from_log is None):
        raise InputError("give one of --from-metrics URL and --from-log FILE")
    if from_metrics is not None:
        derived = run(workload_of.from_metrics(check_url(from_metrics), seconds=seconds, api_key=api_key))
    else:
        assert from_log is not None
        derived = workload_of.from_log(from_log)
    if format_ == "argv":
        click.echo("\n".join(derived.arguments))
    elif format_ == "json":
        body = {"workload": derived.workload.model_dump(mode="json"), "grounds": dict(derived.grounds)}
        click.echo(json.dumps(body, indent=2))
    else:
        load = derived.workload.model_dump()
        for name, ground in derived.grounds:
            value = load[name]
            click.echo(
                f"{name:<16} {value:.3g}   {ground}" if isinstance(value, float) else f"{name:<16} {value}   {ground}"
            )
        click.echo("plan with: plan-config --hw ID " + " ".join(derived.arguments))
