"""``plan-config bench URL``: measure a server that runs already."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

__all__ = ["bench"]

EXIT_OK, EXIT_FAILED = 0, 1


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("url")
@click.option("--python", required=True, metavar="VENV/bin/python", help="Interpreter that SGLang's client runs in.")
@click.option("--concurrency", default="1,8,32", show_default=True, metavar="C[,C...]")
@click.option("--context", default="1024", show_default=True, metavar="TOK[,TOK...]")
@click.option("--output-len", default=256, show_default=True, type=click.IntRange(min=1), metavar="TOK")
@click.option("--minutes", default=15.0, show_default=True, metavar="MIN", help="Budget of the whole matrix.")
@click.option("--tight", default=0.03, show_default=True, metavar="FRAC", help="Half width of the interval to reach.")
@click.option("--max-repeats", default=15, show_default=True, type=click.IntRange(min=1), metavar="N")
@click.option("--temperature", default=0.0, show_default=True)
@click.option("--dataset", default="random-ids", show_default=True, metavar="NAME", help="Dataset name of the client.")
@click.option("--dataset-path", metavar="FILE", help="File of the dataset.")
@click.option("--log", type=click.Path(path_type=Path), metavar="FILE", help="The server's log, for decode lines.")
@click.option("--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Record observations there.")
@click.option("--hardware", default="unknown", metavar="ID", help="Hardware named in the observations.")
@click.option("--model", metavar="ID", help="Model named in the observations [what the server says].")
@click.option("--domain", default="unknown", show_default=True, metavar="code|chat|math|unknown")
@click.option("--api-key", metavar="KEY")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def bench(ctx: click.Context, /, url: str, **given: Any) -> None:
    """Measure the server at URL with SGLang's own client.

    Exit codes: 0 measured, 1 the client or the server failed, 2 bad input.
    """
    import json

    from planner.cli.launch import numbers
    from planner.launch.bench import BenchPlan, matrix
    from planner.launch.bench_client import Dataset
    from planner.launch.bench_run import bench_url
    from planner.launch.progress import make_ui
    from planner.launch.records import Identity
    from planner.launch.verdict import JudgedError

    plan = BenchPlan(
        cells=matrix(
            numbers(given["concurrency"], "--concurrency"), numbers(given["context"], "--context"), given["output_len"]
        ),
        dataset=Dataset(given["dataset"], given["dataset_path"], given["temperature"]),
        budget_s=given["minutes"] * 60.0,
        tight_frac=given["tight"],
        max_repeats=given["max_repeats"],
    )
    identity = Identity(
        hardware=given["hardware"],
        model=given["model"] or "unknown",
        domain=given["domain"],
        source="plan-config bench",
    )
    ui = make_ui(sys.stderr, quiet=given["quiet"])
    try:
        observations = bench_url(
            url,
            python=given["python"],
            plan=plan,
            identity=identity,
            ui=ui,
            log=given["log"],
            ledger=given["ledger"],
            api_key=given["api_key"],
        )
    except JudgedError as error:
        ui.close()
        click.echo(f"FAILED: {error.cause}\n  {error.detail}")
        ctx.exit(EXIT_FAILED)
    finally:
        ui.close()
    if given["format_"] == "json":
        click.echo(json.dumps([one.model_dump(mode="json") for one in observations], indent=2))
    else:
        for one in observations:
            accept = f", accept length {one.accept_len:.2f}" if one.accept_len is not None else ""
            step = f", step {one.step_s * 1e3:.2f} ms" if one.step_s is not None else ""
            power = f", {one.power_w:.0f} W a device" if one.power_w is not None else ""
            spread = f" +- {one.spread_frac:.1%}" if one.spread_frac is not None else ""
            click.echo(
                f"C={one.concurrency} context={one.context_tok} output={one.output_tok}: {one.tok_per_s:.1f} tok/s"
                f"{spread} ({one.n_repeats} repeats){accept}{step}{power}"
            )
    ctx.exit(EXIT_OK)
