"""``plan-config watch URL``: is the service where the plan said it would be?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from planner.launch.watch import Reading, Thresholds

__all__ = ["watch"]

EXIT_OK, EXIT_WARNED = 0, 1


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("url", required=False)
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), metavar="PLAN.json", help="Break-even and interval."
)
@click.option("--break-even", type=float, metavar="TOK", help="Accept length below which speculation loses.")
@click.option("--every", default=10.0, show_default=True, metavar="S", type=click.FloatRange(min=0.1))
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Readings [until interrupted].")
@click.option("--prometheus-rules", is_flag=True, help="Write the same warnings as alert rules, then end.")
@click.option("--api-key", metavar="KEY")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
@click.pass_context
def watch(ctx: click.Context, /, url: str | None, **given: Any) -> None:
    """Watch the service at URL: accept length against break-even, throughput against its interval, queue, KV pool.

    Exit codes: 0 no warning in the last reading, 1 a warning, 2 bad input.
    """
    from planner.errors import InputError
    from planner.launch.watch import prometheus_rules

    thresholds = _thresholds(given)
    if given["prometheus_rules"]:
        click.echo(prometheus_rules(thresholds), nl=False)
        return
    if url is None:
        raise InputError("no URL", "plan-config watch http://host:30000")
    from planner.launch.bench_run import check_url
    from planner.launch.client import run
    from planner.launch.watch_run import watch_url

    try:
        last = run(
            watch_url(
                check_url(url),
                thresholds=thresholds,
                every_s=given["every"],
                n_readings=given["count"],
                show=lambda reading: _show(reading, given["format_"]),
                api_key=given["api_key"],
            )
        )
    except KeyboardInterrupt:
        return
    ctx.exit(EXIT_WARNED if last.warnings else EXIT_OK)


def _thresholds(given: dict[str, Any]) -> Thresholds:
    from dataclasses import replace

    from planner.errors import InputError, Problem
    from planner.launch.target import read_plan_json, target_from_plan
    from planner.launch.watch import Thresholds

    thresholds = Thresholds()
    path: Path | None = given["plan_file"]
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError([Problem(f"cannot be read: {error}", file=str(path))]) from None
        target = target_from_plan(read_plan_json(text, name=str(path)), name=str(path))
        thresholds = Thresholds.of(target.predicted, target.workload)
    if given["break_even"] is not None:
        thresholds = replace(thresholds, break_even_accept_len=given["break_even"])
    return thresholds


def _show(reading: Reading, format_: str) -> None:
    if format_ == "json":
        import json
        from dataclasses import asdict

        click.echo(json.dumps(asdict(reading)))
        return

    def figure(value: float | None, form: str) -> str:
        return "-" if value is None else form.format(value)

    click.echo(
        f"tok/s {figure(reading.tok_per_s, '{:.0f}')}  accept {figure(reading.accept_len, '{:.2f}')}  "
        f"running {figure(reading.running, '{:.0f}')}  waiting {figure(reading.waiting, '{:.0f}')}  "
        f"KV {figure(reading.kv_usage_frac, '{:.0%}')}"
    )
    for kind, text in reading.warnings:
        click.echo(f"  WARNING {kind}: {text}")
