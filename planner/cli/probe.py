"""``plan-config probe LIMIT_ID``: a limit's interval narrowed by bisection."""

from __future__ import annotations

from typing import Any

import click

from planner.cli.experiments import allowed_of, asked_question, gpus_of, run_options, runner_of
from planner.cli.options import plan_options

__all__ = ["probe"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("limit_id", metavar="LIMIT_ID")
@plan_options
@click.option("--bad", type=float, metavar="VALUE", help="Where to end, for a limit without a known bad value.")
@click.option("--resolution", default=0.05, show_default=True, type=click.FloatRange(min=0.0), metavar="FRAC",
              help="Stop when the two ends are this close.")  # fmt: skip
@click.option("--max-launches", type=click.IntRange(min=1), metavar="N", help="Stop after so many.")
@click.option("--plan-only", is_flag=True, help="Show what would be launched, and end.")
@run_options
@click.pass_context
def probe(ctx: click.Context, /, limit_id: str, **given: Any) -> None:
    """Narrow the interval of LIMIT_ID around the plan that the options ask for.

    One setting of the plan is varied; a failure is repeated before it counts, so that a flaky start is no limit. Every
    other limit is kept, unless it is lifted with --lift.

    Exit codes: 0 narrowed, 1 nothing was narrowed, 2 bad input.
    """
    import json

    from planner.learn.planned import plan_base
    from planner.learn.probing import plan_probe

    planned = plan_base(*asked_question(None, given))
    plan = plan_probe(planned, planned.limit(limit_id), bad=given["bad"])
    if given["plan_only"]:
        values = ", ".join(f"{value:g}" for value in sorted(plan.trials))
        for line in (f"{limit_id}: {plan.limit.quantity} between {plan.good:g} and {plan.bad:g}", values, *plan.notes):
            click.echo(line)
        return
    from dataclasses import replace

    from planner.learn.journal import open_journal
    from planner.learn.probe import probe as bisect
    from planner.learn.report_text import render_probe
    from planner.learn.sweep import cost_of

    # Rows, and rows times heads, are one limit in two units: a probe of one walks into the other as well.
    same = {one.id for one in planned.subject.limits if one.quantity == plan.limit.quantity}
    if str(plan.limit.quantity).startswith("verify_rows"):
        same |= {one.id for one in planned.subject.limits if str(one.quantity).startswith("verify_rows")}
    subject = planned.run_subject()
    subject = replace(subject, allowed=(*subject.allowed, *sorted(same), *allowed_of(given)))
    runner = runner_of(given, subject, None)
    header = {"kind": "probe", "limit": limit_id, "hardware": subject.hardware, "model": subject.model}
    try:
        with open_journal(given["folder"] / "journal.jsonl", header=header) as journal:
            run = journal.replay(runner)

            def launch(value: float) -> Any:
                runner.ui.say(f"{plan.limit.quantity} {value:g}")
                return run(plan.trials[value], f"{plan.limit.quantity} {value:g}")

            found = bisect(
                plan.good,
                plan.bad,
                list(plan.trials),
                launch,
                resolution_frac=given["resolution"],
                max_launches=given["max_launches"],
            )
            cost = cost_of(journal, n_gpus=gpus_of(subject.hardware, given))
    finally:
        runner.ui.close()
    if given["format_"] == "json":
        body: dict[str, Any] = {"limit": limit_id, "quantity": plan.limit.quantity, "notes": plan.notes}
        body |= {"before": {"known_good": plan.good, "known_bad": plan.bad}}
        body |= {"probe": found.model_dump(mode="json"), "cost": cost.model_dump(mode="json")}
        click.echo(json.dumps(body, indent=2))
    else:
        click.echo(render_probe(found, plan, cost), nl=False)
    ctx.exit(0 if (found.known_good, found.known_bad) != (plan.good, plan.bad) else 1)
