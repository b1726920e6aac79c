"""``plan-config hw|model|drafter|limits``: list what ships, show one, validate a file of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from planner.data import (
    load_drafter,
    load_hardware,
    load_limits,
    load_model,
    packaged_ids,
    read_drafter,
    read_hardware,
    read_limits,
    read_model,
)
from planner.domain import HardwareProfile, Limit, Value
from planner.errors import InputError, nearest_hint
from planner.units import format_bytes

__all__ = ["drafter", "hw", "limits", "model"]


def _show(value: Value, as_json: bool) -> None:
    data = value.model_dump(mode="json")
    if as_json:
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    sources = {entry["field"]: entry for entry in data.pop("sources", [])}
    width = max(len(name) for name in data)
    for name, entry in data.items():
        if isinstance(entry, list):
            entry = ", ".join(str(item) for item in entry) if not entry or not isinstance(entry[0], dict) else entry
        source = sources.get(name) or (sources.get("*") if isinstance(entry, (int, float)) else None)
        ground = f"   [{source['kind']}: {source['ref']}]" if source else ""
        if isinstance(entry, list):
            click.echo(f"{name}:")
            for item in entry:
                click.echo(f"  {json.dumps(item, ensure_ascii=False)}")
        else:
            click.echo(f"{name:<{width}}  {entry}{ground}")


def _hardware_line(id_: str) -> str:
    value: HardwareProfile = load_hardware(id_)
    known = "predictions" if value.predictions else "facts only: no predictions"
    links = value.link_kind.value + (" + NVLS" if value.nvls else "")
    return (
        f"{value.id:<14} {value.n_gpus}x {value.sm_name:<7} {format_bytes(value.memory_bytes):>10}  {links:<16} {known}"
    )


def _model_line(id_: str) -> str:
    value = load_model(id_)
    experts = f"{value.n_experts} experts top-{value.n_experts_per_tok}" if value.n_experts else "dense"
    size = value.weight_bytes / 1e9
    return f"{value.id:<18} {value.attention_kind.value:<6} {value.n_layers} layers, {experts}, {size:,.0f} GB"


def _drafter_line(id_: str) -> str:
    value = load_drafter(id_)
    return f"{value.id:<18} {value.algorithm}, block {value.block_size}, for {', '.join(value.targets)}"


def _group(
    name: str,
    title: str,
    ids: Callable[[], Sequence[str]],
    line: Callable[[str], str],
    load: Callable[[str], Value],
    read: Callable[[Path], Any],
) -> click.Group:
    """The three commands of one kind of profile."""

    @click.group(name=name, help=f"{title}: list, show, validate.")
    def group() -> None: ...

    @group.command(name="list", help="One line for each that ships.")
    def list_() -> None:
        for id_ in ids():
            click.echo(line(id_))

    @group.command(help="Every field with its source.")
    @click.argument("id_", metavar="ID|FILE")
    @click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
    def show(id_: str, format_: str) -> None:
        _show(load(id_), format_ == "json")

    @group.command(help="Check a file; every fault is named with its line.")
    @click.argument("file", type=click.Path(path_type=Path))
    def validate(file: Path) -> None:
        value = read(file)
        found = (
            f"{len(value)} limit{'s' if len(value) != 1 else ''}"
            if isinstance(value, tuple)
            else f"{name} profile {value.id}"
        )
        click.echo(f"{file}: {found}, no fault")

    return group


def _limit(id_: str) -> Limit:
    known = {limit.id: limit for limit in load_limits()}
    if id_ not in known:
        raise InputError(f"unknown limit {id_!r}", nearest_hint(id_, sorted(known)))
    return known[id_]


def _limit_line(id_: str) -> str:
    value = _limit(id_)
    good = "-" if value.known_good is None else f"{value.known_good:g}"
    bad = "-" if value.known_bad is None else f"{value.known_bad:g}"
    return f"{value.id:<30} good {good:>6}  bad {bad:>6}  {value.status.value:<12} {value.consequence.value}"


hw = _group("hw", "Hardware profiles", lambda: packaged_ids("hardware"), _hardware_line, load_hardware, read_hardware)
model = _group("model", "Model profiles", lambda: packaged_ids("model"), _model_line, load_model, read_model)
drafter = _group(
    "drafter", "Drafter profiles", lambda: packaged_ids("drafter"), _drafter_line, load_drafter, read_drafter
)
limits = _group("limits", "Limits", lambda: [limit.id for limit in load_limits()], _limit_line, _limit, read_limits)
