"""``plan-config fix FILE``: the smallest change that clears every error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.cli.check import load_given, parse_whole, subject_options, write_or_show

if TYPE_CHECKING:
    from planner.review.fixing import Repaired

__all__ = ["fix"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file")
@subject_options
@click.option("--diff", "mode", flag_value="diff", default=True, help="Print the change as a diff [default].")
@click.option("--write", "mode", flag_value="write", help="Write the repaired file.")
@click.option("--stdout", "mode", flag_value="stdout", help="Print the repaired text.")
@click.option("--safe-only", is_flag=True, help="Use only edits that need no person's look.")
@click.pass_context
def fix(ctx: click.Context, /, file: str, mode: str, safe_only: bool, **given: Any) -> None:
    """Repair a launch file: the smallest change that clears every error, layout and comments kept.

    Exit codes: 0 nothing is left, 1 an error is left that no edit clears, 2 the file cannot be read.
    """
    from planner.review.files import load_settings
    from planner.review.fixing import repair

    settings = load_settings(given.pop("config"))
    subject, limits, form = load_given(given, settings)
    parsed = parse_whole(file, form)
    repaired = repair(parsed, subject=subject, limits=limits, settings=settings, allow_unsafe=not safe_only)
    if mode == "stdout":
        click.echo(repaired.text, nl=False)
    else:
        write_or_show(file, before=parsed.text, after=repaired.text, diff=repaired.diff, write=mode == "write")
    for line in summary(repaired):
        click.echo(line, err=True)
    ctx.exit(0 if repaired.complete else 1)


def summary(repaired: Repaired) -> list[str]:
    """What was changed for which finding, what it costs, and what is left."""
    from planner.domain import Fix
    from planner.render.findings import fix_text

    lines = []
    for change in repaired.changes:
        edits = "; ".join(fix_text(Fix(edits=change.edits)))
        lines.append(f"{change.code}: {edits}" + ("" if change.safe else " (needs a look)"))
    before, after = repaired.cost
    if repaired.changes:
        if after is not None:
            was = f"{before.tok_per_s:.0f} [{before.low:.0f}, {before.high:.0f}]" if before is not None else "unknown"
            lines.append(
                f"predicted tok/s: {was} before, {after.tok_per_s:.0f} [{after.low:.0f}, {after.high:.0f}] after, "
                f"at {after.target_c} clients"
            )
        else:
            lines.append(f"predicted tok/s: not predicted, {repaired.no_cost}")
        if not repaired.proved_smallest:
            lines.append("the search ended early: a smaller change may exist")
    for finding in repaired.left:
        lines.append(f"left: {finding.file}:{finding.line}:{finding.column} {finding.code} {finding.message}")
    if not repaired.changes and not repaired.left:
        lines.append("no errors: nothing to change")
    return lines
