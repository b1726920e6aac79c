"""``plan-config rules [CODE]``: the catalogue, or one rule explained."""

from __future__ import annotations

import json

import click

__all__ = ["rules"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("code", required=False)
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json", "markdown"]))
def rules(code: str | None, format_: str) -> None:
    """List the rules, or explain one by its code or slug."""
    from planner.errors import InputError, nearest_hint
    from planner.render.rule_pages import catalogue_text, page, page_text, rule_json
    from planner.rules import RULES, rule_of

    if code is None:
        if format_ == "json":
            click.echo(json.dumps([rule_json(rule) for rule in RULES], indent=2, ensure_ascii=False))
        else:
            click.echo(catalogue_text(RULES, markdown=format_ == "markdown"), nl=False)
        return
    rule = rule_of(code)
    if rule is None:
        raise InputError(f"no rule {code!r}", nearest_hint(code.upper(), [one.code for one in RULES]))
    if format_ == "json":
        click.echo(json.dumps(rule_json(rule), indent=2, ensure_ascii=False))
    elif format_ == "markdown":
        click.echo(page(rule), nl=False)
    else:
        click.echo(page_text(rule), nl=False)
