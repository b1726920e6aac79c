"""``plan-config check``: a review of launch files, of words after ``--``, of standard input or of a running server."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from planner.cli.options import add_options

if TYPE_CHECKING:
    from planner.domain import Limit
    from planner.domain.report import Report
    from planner.parse import ParsedFile
    from planner.review import Settings, Subject

__all__ = ["WordsAfterDashes", "check", "load_given", "parse_whole", "subject_options", "write_or_show"]

_F = TypeVar("_F", bound=Callable[..., Any])
_GC_THRESHOLD = 250_000
"""New objects before the interpreter looks for cycles. A check of one file makes fewer; a tree of files is still kept
in bounds."""
LEVELS = ("error", "warning", "note", "never")
FORMAT_NAMES = ("text", "json", "sarif", "github", "gitlab")

_SUBJECT: tuple[Callable[[Any], Any], ...] = (
    click.option("--hw", metavar="ID|FILE", help="Hardware profile. Without it rules about machines are silent."),
    click.option("--gpus", type=int, metavar="N", help="GPUs that the launch has."),
    click.option("--model", metavar="ID|FILE|FOLDER|NAME", help="Model profile or name [told from --model-path]."),
    click.option("--drafter", metavar="ID|FILE|FOLDER", help="Drafter profile."),
    click.option("--engine-version", metavar="VERSION|TAG|YYYY-MM", help="SGLang version [told from the image]."),
    click.option("--dialect", metavar="NAME", help="Build with tree speculation: field, pr29907, upstream, ..."),
    click.option("--form", metavar="NAME", help="Form of the file [told from name and content]."),
    click.option("--limits", multiple=True, metavar="FILE", help="Limits added to the built-in ones (repeatable)."),
    click.option("--config", metavar="FILE", help="File with [tool.plan-config] [pyproject.toml here]."),
)


def subject_options(command: _F) -> _F:
    """Adds the options that say what a launch is checked against."""
    return add_options(command, _SUBJECT)


class WordsAfterDashes(click.Command):
    """A command that keeps the words after ``--`` apart from its own arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args
        if "--" in args:
            at = args.index("--")
            own, ctx.meta["words"] = args[:at], tuple(args[at + 1 :])
        return super().parse_args(ctx, own)


@click.command(cls=WordsAfterDashes, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, metavar="[FILE|FOLDER|-]... [-- ARGV]")
@subject_options
@click.option("--url", metavar="URL", help="Review what a running server reports (/server_info).")
@click.option("--format", "format_", default="text", type=click.Choice(FORMAT_NAMES), show_default=True)
@click.option("--fail-on", type=click.Choice(LEVELS), help="Findings from this level on exit with 1 [error].")
@click.option("--show-effective", is_flag=True, help="Print asked against effective values.")
@click.option("--baseline", metavar="FILE", help="Set the findings of this file aside.")
@click.option("--write-baseline", metavar="FILE", help="Write all findings to a baseline file and exit with 0.")
@click.option("--output", "-o", metavar="FILE", help="Write the report there instead of to standard output.")
@click.pass_context
def check(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    url: str | None,
    format_: str,
    fail_on: str | None,
    show_effective: bool,
    baseline: str | None,
    write_baseline: str | None,
    output: str | None,
    **given: Any,
) -> None:
    """Review proposed SGLang launches as the engine would run them.

    Exit codes: 0 clean, 1 findings at or above --fail-on, 2 something cannot be read.
    """
    _start_lightly()
    from planner.domain import Level
    from planner.errors import InputError
    from planner.render.findings import render_report
    from planner.review import baseline_of
    from planner.review.files import load_baseline, load_settings, write_text

    words: tuple[str, ...] = ctx.meta.get("words", ())
    if not files and not words and url is None:
        raise InputError("nothing to check", "name a file, - for standard input, or a command after --")
    settings = load_settings(given.pop("config"))
    subject, limits, form = load_given(given, settings)
    report = gather(
        files,
        words,
        url,
        subject=subject,
        limits=limits,
        form=form,
        settings=settings,
        baseline=load_baseline(baseline) if write_baseline is None else frozenset(),
        with_figures=show_effective or format_ == "json",
    )
    if write_baseline is not None:
        write_text(write_baseline, baseline_of(report.findings))
        click.echo(f"{len(report.findings)} findings written to {write_baseline}", err=True)
        ctx.exit(2 if report.unreadable else 0)
    text = render_report(report, format_, show_effective=show_effective)
    if output is not None:
        write_text(output, text)
    else:
        click.echo(text, nl=False)
    level = fail_on or str(settings.options.get("fail_on", "error"))
    ctx.exit(report.exit_code(None if level == "never" else Level(level)))


def _start_lightly() -> None:
    """Leaves out what a review does not use: pydantic's search for plugins (its own switch; no value here has one), and
    looking for cycles while one file is read."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if gc.isenabled():
        gc.set_threshold(max(_GC_THRESHOLD, gc.get_threshold()[0]))


def load_given(given: Mapping[str, Any], settings: Settings) -> tuple[Subject, tuple[Limit, ...], str | None]:
    """Subject, limits and form from options; ``[tool.plan-config]`` gives what the options leave out."""
    from planner.review import load_subject
    from planner.review.checking import limits_for

    def option(name: str) -> Any:
        return given[name] if given[name] is not None else settings.options.get(name)

    subject = load_subject(
        hw=option("hw"),
        gpus=option("gpus"),
        model=option("model"),
        drafter=option("drafter"),
        engine_version=option("engine_version"),
        dialect=option("dialect"),
    )
    return subject, limits_for(subject, given["limits"]), given["form"]


def parse_stdin(form: str | None) -> ParsedFile:
    """A launch file from standard input."""
    from planner.parse import parse_text

    return parse_text(sys.stdin.buffer.read().decode("utf-8", errors="replace"), name="<stdin>", form=form)


def parse_whole(file: str, form: str | None) -> ParsedFile:
    """A launch file, or standard input for ``-``, that can be read as a whole.

    Raises:
        InputError: what cannot be read.
    """
    from planner.errors import InputError
    from planner.parse import parse_path

    parsed = parse_stdin(form) if file == "-" else parse_path(file, form=form)
    if parsed.problems:
        raise InputError(parsed.problems)
    return parsed


def write_or_show(file: str, *, before: str, after: str, diff: str, write: bool) -> None:
    """Writes a changed file; without ``write``, and for standard input, prints the diff."""
    from planner.review.files import write_text

    if not write or file == "-":
        click.echo(diff, nl=False)
    elif after != before:
        write_text(file, after)


def gather(
    files: Sequence[str],
    words: Sequence[str],
    url: str | None,
    *,
    subject: Subject,
    limits: tuple[Limit, ...],
    form: str | None,
    settings: Settings,
    baseline: frozenset[str],
    with_figures: bool,
) -> Report:
    """One report of everything that was named."""
    from planner.review import check_files, check_server, check_words, review_file
    from planner.review.checking import merge

    predict = None
    if with_figures:
        from planner.review.predicting import figures_of

        predict = figures_of
    parts: list[Report] = []
    paths = [name for name in files if name != "-"]
    if paths:
        parts.append(
            check_files(
                paths,
                subject=subject,
                limits=limits,
                form=form,
                settings=settings,
                baseline=baseline,
                predict=predict,
            )
        )
    if "-" in files:
        reviewed = review_file(
            parse_stdin(form), subject=subject, limits=limits, settings=settings, baseline=baseline, predict=predict
        )
        parts.append(reviewed.report())
    if words:
        parts.append(check_words(words, subject=subject, limits=limits, settings=settings, predict=predict))
    if url is not None:
        parts.append(check_server(fetch_server_info(url), name=url, subject=subject, limits=limits))
    return merge(parts)


def fetch_server_info(url: str) -> Mapping[str, Any]:
    """The answer of ``/server_info`` (``/get_server_info`` on older servers).

    Raises:
        InputError: nothing answers, or the answer is not JSON.
    """
    import httpx

    from planner.errors import InputError

    base = url.rstrip("/")
    for suffix in ("/server_info", "/get_server_info"):
        base = base.removesuffix(suffix)
    reason = "no answer"
    for path in ("/server_info", "/get_server_info"):
        try:
            answer = httpx.get(base + path, timeout=10.0, follow_redirects=True)
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            reason = str(fault) or type(fault).__name__
            continue
        if answer.status_code == 404:
            reason = f"{path} answers 404"
            continue
        if answer.status_code != 200:
            reason = f"{path} answers {answer.status_code}"
            break
        try:
            info = answer.json()
        except ValueError:
            reason = f"{path} does not answer in JSON"
            break
        if isinstance(info, dict):
            return info
        reason = f"{path} does not answer with an object"
    raise InputError(f"{url}: {reason}", "name a running SGLang server, such as http://localhost:30000")
