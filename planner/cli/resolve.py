"""``plan-config resolve``: a launch as asked against what the engine makes of it, with the reasons."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["resolve"]

EXIT_OK, EXIT_NO, EXIT_BAD_INPUT = 0, 1, 2


@click.command("resolve", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--hw", required=True, help="Hardware profile (id or file).")
@click.option("--engine-version", help="Release, image tag or month (YYYY-MM); default: the newest known.")
@click.option("--dialect", help="Build that speaks a dialect of tree speculation.")
@click.option("--model", "model_ref", help="Model profile, where --model-path is no folder with a config.json.")
@click.option("--drafter", "drafter_ref", help="Drafter profile, where the draft path is no folder.")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="Environment of the server (repeatable).")
@click.option("--without-cuda", is_flag=True, help="As in a process whose torch has no CUDA (contract environments).")
@click.option("--all", "show_all", is_flag=True, help="Text: every effective value, not only the changed ones.")
@click.option("--format", "format_", default="text", type=click.Choice(["text", "json"]))
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True)
@click.pass_context
def resolve(
    ctx: click.Context,
    hw: str,
    engine_version: str | None,
    dialect: str | None,
    model_ref: str | None,
    drafter_ref: str | None,
    env: tuple[str, ...],
    without_cuda: bool,
    show_all: bool,
    format_: str,
    argv: tuple[str, ...],
) -> None:
    """Resolve a launch: plan-config resolve --hw b300 --engine-version 0.5.23 -- --model-path PATH --tp-size 8

    Exit code 0: the engine takes it; 1: the engine would refuse it; 2: its parser would not read it.
    """
    from planner.data import load_hardware
    from planner.engine.argv import read_argv, split_program
    from planner.engine.dialects import get_dialect
    from planner.engine.resolution import resolve as resolve_launch
    from planner.engine.runtime import runtime_facts
    from planner.engine.version import parse_engine_version
    from planner.errors import InputError, Problem
    from planner.render.engine import render_resolution, resolution_json

    hardware = load_hardware(hw)
    speaks = get_dialect(dialect) if dialect is not None else None
    text = engine_version or (speaks.base_version if speaks is not None and speaks.has_tree else None)
    version = parse_engine_version(text)
    pairs = [item.partition("=") for item in env]
    wrong = [Problem("expected NAME=VALUE", field="--env", value="".join(pair)) for pair in pairs if not pair[1]]
    if wrong:
        raise InputError(wrong)
    _, tokens = split_program(argv)
    read = read_argv(tokens, version=version, dialect=dialect)
    launch = read.launch.replace(env=tuple((name, value) for name, _, value in pairs))
    if read.problems:
        if format_ == "json":
            click.echo(resolution_json(None, problems=read.problems, version=version))
        for problem in read.problems:
            click.echo(f"plan-config: SGLang {version.table} exits with code 2: {problem}", err=True)
        ctx.exit(EXIT_BAD_INPUT)
    model, model_config = _model(launch.model_path, model_ref)
    drafter, draft_config = _drafter(launch.speculative_draft_model_path, drafter_ref)
    resolution = resolve_launch(
        launch,
        hardware=hardware,
        model=model,
        drafter=drafter,
        engine_version=version,
        dialect=dialect,
        model_config=model_config,
        draft_config=draft_config,
        cuda_visible=not without_cuda,
    )
    runtime = runtime_facts(resolution) if resolution.error is None else None
    if format_ == "json":
        click.echo(resolution_json(resolution, read=read, runtime=runtime))
    else:
        click.echo(render_resolution(resolution, read=read, runtime=runtime, show_all=show_all), nl=False)
    ctx.exit(EXIT_OK if resolution.error is None else EXIT_NO)


def _model(path: str | None, ref: str | None) -> tuple[Any, Any]:
    """Profile and config.json of the target: a folder speaks for itself, a known id has its profile."""
    from pathlib import Path

    from planner.data import load_model, packaged_ids
    from planner.data.hf_config import read_hf_config
    from planner.errors import InputError

    if ref is not None:
        return load_model(ref), None
    if path is None:
        raise InputError("the launch has no --model-path")
    if Path(path).is_dir():
        return None, read_hf_config(Path(path))
    if path.startswith(("/", "./", "../")):
        raise InputError(f"no such folder: {path}", "--model-path is a folder with config.json, or name --model")
    return next((found for name in packaged_ids("model") if (found := load_model(name)).model_path == path), None), None


def _drafter(path: str | None, ref: str | None) -> tuple[Any, Any]:
    from pathlib import Path

    from planner.data import load_drafter, packaged_ids
    from planner.data.hf_config import read_hf_config

    if ref is not None:
        return load_drafter(ref), None
    if path is None:
        return None, None
    if Path(path).is_dir():
        return None, read_hf_config(Path(path))
    known = (load_drafter(name) for name in packaged_ids("drafter"))
    return next((found for found in known if found.model_path == path), None), None
