"""``plan-config launch``: a plan on a real server, judged, measured, recorded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli.options import plan_options

if TYPE_CHECKING:
    from planner.launch.bench import BenchPlan
    from planner.launch.forms.base import Form
    from planner.launch.host import Host
    from planner.launch.target import Target
    from planner.launch.verdict import LaunchReport

__all__ = ["launch", "numbers"]

EXIT_OK, EXIT_FAILED = 0, 1


class AfterDashes(click.Command):
    """A command that takes everything after ``--`` as it is, into the parameter ``argv``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Splits at the first ``--``."""
        if "--" in args:
            cut = args.index("--")
            args, ctx.params["argv"] = args[:cut], tuple(args[cut + 1 :])
        else:
            ctx.params["argv"] = ()
        return super().parse_args(ctx, args)


def numbers(text: str, option: str) -> tuple[int, ...]:
    """``1,8,64`` as numbers.

    Raises:
        InputError: not a list of whole numbers above zero.
    """
    from planner.errors import InputError, Problem

    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdigit() and int(word) > 0 for word in words):
        raise InputError([Problem("whole numbers above 0, separated by commas", field=option, value=text)])
    return tuple(int(word) for word in words)


@click.command(cls=AfterDashes, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("plan", required=False, type=click.Path(path_type=Path))
@plan_options
@click.option("--python", metavar="VENV/bin/python", help="Interpreter of the environment that SGLang is in.")
@click.option(
    "--replica", default=0, show_default=True, metavar="N", help="Which launch of a plan with several servers."
)
@click.option(
    "--run-dir", type=click.Path(path_type=Path), metavar="DIR", help="Logs and records [plan-config-runs/TIME]."
)
@click.option("--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Record observations there.")
@click.option("--hardware", metavar="ID", help="Hardware named in observations of a plain argv.")
@click.option("--then", default="stay", show_default=True, type=click.Choice(["stay", "stop", "hand-over"]))
@click.option("--bench", metavar="C[,C...]", help="Measure at these concurrencies when the server is right.")
@click.option("--bench-context", default="1024", show_default=True, metavar="TOK[,TOK...]")
@click.option("--bench-output", default=256, show_default=True, metavar="TOK")
@click.option("--bench-minutes", default=15.0, show_default=True, metavar="MIN", help="Budget of the benchmark.")
@click.option("--soak-minutes", type=float, metavar="MIN", help="Keep load on and watch.")
@click.option("--ready-timeout", default=1800.0, show_default=True, metavar="S")
@click.option("--call-timeout", default=120.0, show_default=True, metavar="S", help="Of one canary generation.")
@click.option("--no-canary", is_flag=True, help="Do not judge the answers (the report says so).")
@click.option("--allow", multiple=True, metavar="CODE=REASON", help="Set a blocking finding aside (repeatable).")
@click.option("--ssh", metavar="HOST", help="Launch on that host.")
@click.option("--ssh-option", multiple=True, metavar="OPT", help="One word for ssh (repeatable): --ssh-option=-p2222.")
@click.option("--systemd", metavar="UNIT", help="As a service; rolled back when it is not right.")
@click.option("--unit-dir", default="/etc/systemd/system", show_default=True, metavar="DIR")
@click.option("--user-unit", is_flag=True, help="A service of the user's own manager.")
@click.option("--docker", metavar="IMAGE", help="As a container; rolled back when it is not right.")
@click.option("--container", default="sglang", show_default=True, metavar="NAME")
@click.option("--mount", multiple=True, metavar="SRC:DST[:ro]", help="Of the container (repeatable).")
@click.option("--container-gpus", default="all", show_default=True, metavar="all|none|IDS")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def launch(ctx: click.Context, /, plan: Path | None, argv: tuple[str, ...], **given: Any) -> None:
    """Start a plan, judge it, measure it, record it.

    PLAN is the JSON of `plan-config ... --format json`. Without it give the options of a plan (--hw, --target-c), or
    the server's own command after --.

    Exit codes: 0 serving and right, 1 failed or wrong (the cause is named), 2 bad input.
    """
    from planner.launch.report_text import render_launch

    report = run_command(plan, argv, given)
    text = report.model_dump_json(indent=2) + "\n" if given["format_"] == "json" else render_launch(report)
    click.echo(text, nl=False)
    ctx.exit(EXIT_OK if report.ok else EXIT_FAILED)


def run_command(plan: Path | None, argv: Sequence[str], given: dict[str, Any]) -> LaunchReport:
    """Everything but printing.

    Raises:
        PlannerError: bad input, found before anything was changed.
    """
    from planner.launch.gate import TimeLimits
    from planner.launch.progress import make_ui
    from planner.launch.records import Identity
    from planner.launch.session import Order, Then, run_launch
    from planner.launch.verdict import Stage

    target, lifted = _target(plan, argv, given)
    host = _host(given, target)
    notes = _review(target, given, lifted)
    run_dir = given["run_dir"] or _new_run_dir()
    limits = TimeLimits(ready_timeout_s=given["ready_timeout"], call_timeout_s=given["call_timeout"])
    record = _recorder(given["ledger"])
    ui = make_ui(sys.stderr, quiet=given["quiet"])
    for note in notes:
        ui.say(note)
    form = _form(target, host, given)
    try:
        if form is not None:
            from planner.launch.forms import deploy

            return deploy(form, target, run_dir=run_dir, limits=limits, ui=ui, canary=not given["no_canary"])
        identity = Identity.of(target, hardware=given["hardware"] or given["hw"], domain=None)
        order = Order(
            target=target,
            run_dir=run_dir,
            host=host,
            limits=limits,
            then=Then(given["then"]),
            canary=not given["no_canary"],
            measures=tuple((Stage(name), measure) for name, measure in _measures(given, identity)),
            record=record,
            identity=identity,
        )
        return run_launch(order, ui)
    finally:
        ui.close()


def _target(plan: Path | None, argv: Sequence[str], given: dict[str, Any]) -> tuple[Target, list[str]]:
    """(what to launch, ids that the plan sets aside)."""
    from planner.errors import InputError, Problem
    from planner.launch.target import read_plan_json, target_from_argv, target_from_plan

    asked = [plan is not None, bool(argv), given["hw"] is not None or given["target_c"] is not None]
    if sum(asked) != 1:
        raise InputError(
            "give one of: a plan file, the options of a plan (--hw, --target-c), the server's command after `--`"
        )
    lifted: list[str] = []
    if argv:
        target = target_from_argv(argv)
    else:
        if plan is not None:
            try:
                text = plan.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not a text file"
                raise InputError(
                    [Problem(reason or str(error), file=str(plan), hint="give the JSON of a plan")]
                ) from None
            data, name = read_plan_json(text, name=str(plan)), str(plan)
        else:
            from planner.cli.options import question_from
            from planner.render.plan_json import plan_to_dict
            from planner.search.planning import make_plan

            data, name = plan_to_dict(make_plan(question_from(given))), "plan"
        lifted = [str(lift.get("id")) for lift in data.get("lifted") or () if isinstance(lift, dict)]
        target = target_from_plan(data, name=name, replica=given["replica"])
    return target.with_python(given["python"]), lifted


def _review(target: Target, given: dict[str, Any], lifted: list[str]) -> list[str]:
    from planner.errors import InputError, Problem
    from planner.launch.blocking import refuse_blocking

    allowed = list(lifted)
    for text in given["allow"]:
        code, equals, reason = text.partition("=")
        if not equals or not reason.strip():
            raise InputError([Problem(f"{text!r} has no reason", field="--allow", hint=f'write --allow {code}="why"')])
        allowed.append(code.strip())
    return refuse_blocking(
        target,
        hardware=given["hardware"] or given["hw"],
        allowed=allowed,
        engine_version=given["engine_version"],
    )


def _host(given: dict[str, Any], target: Target) -> Host:
    from planner.errors import InputError
    from planner.launch.host import LocalHost, SshHost
    from planner.launch.session import free_port

    if given["ssh"] is None:
        return LocalHost()
    if given["ssh"].startswith("-"):
        raise InputError(f"{given['ssh']!r} is no host name")
    if given["then"] == "hand-over":
        raise InputError(
            "a server started over ssh ends with its connection", "use --systemd or --docker there, or --then stay"
        )
    return SshHost(name=given["ssh"], options=tuple(given["ssh_option"]), forward=(free_port(), target.port))


def _form(target: Target, host: Host, given: dict[str, Any]) -> Form | None:
    from planner.errors import InputError
    from planner.launch.forms import DockerForm, SystemdForm

    if given["systemd"] and given["docker"]:
        raise InputError("--systemd and --docker are two forms: give one")
    if (given["systemd"] or given["docker"]) and (given["bench"] or given["soak_minutes"]):
        raise InputError("a unit or container is judged, not measured", "use `plan-config bench URL` when it serves")
    if given["systemd"]:
        return SystemdForm(target, host, given["systemd"], folder=given["unit_dir"], user=given["user_unit"], cwd=None)
    if given["docker"]:
        gpus = None if given["container_gpus"] == "none" else given["container_gpus"]
        return DockerForm(target, host, given["docker"], given["container"], gpus=gpus, mounts=given["mount"])
    return None


def _measures(given: dict[str, Any], identity: Any) -> list[tuple[str, Any]]:
    from planner.launch.measures import bench_measure, soak_measure

    found = []
    plan = _bench_plan(given)
    if given["bench"]:
        found.append(("bench", bench_measure(plan, identity)))
    if given["soak_minutes"]:
        found.append(("soak", soak_measure(plan, given["soak_minutes"])))
    return found


def _bench_plan(given: dict[str, Any]) -> BenchPlan:
    from planner.launch.bench import BenchPlan, matrix

    clients = numbers(given["bench"] or "8", "--bench")
    contexts = numbers(given["bench_context"], "--bench-context")
    return BenchPlan(cells=matrix(clients, contexts, given["bench_output"]), budget_s=given["bench_minutes"] * 60.0)


def _recorder(path: Path | None) -> Any:
    """Opens the ledger now, so that a file that is none is refused before anything starts."""
    if path is None:
        return None
    from planner.launch.ledger import Ledger

    Ledger.refuse(path)

    def record(observations: Any) -> None:
        with Ledger(path, create=True) as ledger:
            ledger.append(observations)

    return record


def _new_run_dir() -> Path:
    from datetime import UTC, datetime

    return Path("plan-config-runs") / datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
