"""Observations from text: CSV, JSON lines of rows, of ledger observations, of ``sglang.benchmark.serving``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from planner.domain import HardwareProfile, ModelProfile, Observation
from planner.domain.faults import faults_of
from planner.errors import InputError, Problem, nearest
from planner.estimate.step_cost.ledger import row_of_benchmark, row_of_observation, why_no_row

__all__ = ["Observed", "observed_rows", "read_observations"]

_LEDGER_COLUMNS = {"candidate", "cause", "recorded_at"}
_MAX_PROBLEMS = 20

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Observed:
    """Rows of a fit, and what was left out."""

    rows: tuple[dict[str, object], ...]
    left_out: tuple[str, ...]


def read_observations(text: str, name: str) -> list[Observation | Row]:
    """What a file holds, one entry for each run; every entry says its file and line.

    Raises:
        InputError: every line that cannot be read, at most 20.
    """
    if not text.strip():
        raise InputError([Problem("an empty file", file=name, hint="give observations: a ledger, CSV or JSON lines")])
    start = text.lstrip()[:1]
    problems: list[Problem] = []
    entries = _json_lines(text, name, problems) if start in "{[" else _csv_rows(text, name, problems)
    if problems:
        raise InputError(problems[:_MAX_PROBLEMS])
    if not entries:
        raise InputError([Problem("no observations", file=name, hint="a header line alone says nothing")])
    return entries


def _json_lines(text: str, name: str, problems: list[Problem]) -> list[Observation | Row]:
    entries: list[Observation | Row] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            # Python's reader takes Infinity, which the engine's client writes for request_rate.
            record = json.loads(line)
        except json.JSONDecodeError as error:
            hint = "one JSON object a line"
            if not problems and _is_calibration(text):
                hint = "this is a calibration: give it to --calibration; fit takes what it was made from"
                problems.append(Problem("not observations", file=name, hint=hint))
                return []
            problems.append(Problem(f"not JSON: {error.msg}", file=name, line=number, hint=hint))
            continue
        if not isinstance(record, dict):
            kind = type(record).__name__
            problems.append(Problem(f"not a JSON object but a {kind}", file=name, line=number, hint="one a line"))
            continue
        entry = _entry(record, name, number, problems)
        if entry is not None:
            entries.append(entry)
    return entries


def _is_calibration(text: str) -> bool:
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        return False
    return isinstance(whole, dict) and "covariance" in whole


def _entry(record: dict[str, Any], name: str, line: int, problems: list[Problem]) -> Observation | Row | None:
    if "mean_tpot_ms" in record or "server_info" in record:
        try:
            return {**row_of_benchmark(record, name=name, line=line), "file": name, "line": line}
        except InputError as error:
            problems.extend(error.problems)
            return None
    if "outcome" in record or {"engine_version", "hardware", "source"} <= record.keys():
        try:
            return Observation.model_validate(record)
        except ValidationError as error:
            for _, fault in faults_of(error, Observation):
                problems.append(Problem(fault.message, name, line, fault.field, fault.value, fault.hint))
            return None
    return {**record, "file": name, "line": line}


def _csv_rows(text: str, name: str, problems: list[Problem]) -> list[Observation | Row]:
    lines = text.splitlines(keepends=True)
    skipped = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    reader = csv.reader(io.StringIO("".join(lines[skipped:]), newline=""))
    header = [cell.strip().removeprefix("\ufeff") for cell in next(reader, [])]
    if set(header) >= _LEDGER_COLUMNS:
        hint = "export with --form jsonl, or give the ledger itself"
        problems.append(Problem("a ledger's CSV export", file=name, line=skipped + 1, hint=hint))
        return []
    if "step_s" not in header:
        near = nearest("step_s", header, n=1)
        hint = "a column step_s, in seconds, is needed" + (f"; {near[0]!r} is there" if near else "")
        shown = ", ".join(header[:8])
        problems.append(Problem(f"no column step_s (columns: {shown})", file=name, line=skipped + 1, hint=hint))
        return []
    twice = sorted({column for column in header if column and header.count(column) > 1})
    if twice:
        problems.append(Problem(f"column {twice[0]} is there twice", file=name, line=skipped + 1, field=twice[0]))
        return []
    entries: list[Observation | Row] = []
    for cells in reader:
        line = skipped + reader.line_num
        if not any(cell.strip() for cell in cells) or cells[0].startswith("#"):
            continue
        if len(cells) != len(header):
            text_ = f"{len(cells)} cells, the header has {len(header)}"
            problems.append(Problem(text_, file=name, line=line, hint="an empty cell still needs its comma"))
            continue
        row = {key: cell.strip() for key, cell in zip(header, cells, strict=True) if key and cell.strip()}
        entries.append({**row, "file": name, "line": line})
    return entries


def observed_rows(
    entries: Iterable[Observation | Row], *, hardware: HardwareProfile, model: ModelProfile, name: str | None = None
) -> Observed:
    """Rows of one machine and model; what is of another one, failed or was not timed is left out and counted.

    Args:
        entries: observations and rows, as :func:`read_observations` gives them.
        name: file or ledger that the observations come from.

    Raises:
        InputError: the same observation twice.
    """
    rows: list[dict[str, object]] = []
    reasons: dict[str, int] = {}
    seen: dict[str, Observation] = {}
    problems: list[Problem] = []
    machines = _names(hardware.id, *hardware.aliases)
    models = _names(model.id, model.model_path, *model.aliases)
    if isinstance(entries, (str, bytes, Mapping)):
        hint = "a list of observations or rows; plan-config fit reads files"
        raise InputError([Problem(f"observations are one {type(entries).__name__}", hint=hint)])
    for position, entry in enumerate(entries):
        if not isinstance(entry, (Observation, Mapping)):
            kind = type(entry).__name__
            text = f"entry {position} is a {kind}, neither an Observation nor a mapping of field to value"
            problems.append(Problem(text, file=name, hint="fields: planner.fit_step_cost"))
            continue
        if isinstance(entry, Observation):
            if entry.id in seen:
                hint = "a ledger and its export hold the same runs: give one of them"
                text = f"observation {entry.id} is given twice"
                problems.append(Problem(text, file=name, field="id", value=entry.id, hint=hint))
                continue
            seen[entry.id] = entry
        why = _elsewhere(entry, machines, models)
        if why is None and isinstance(entry, Observation):
            why = why_no_row(entry)
        if why is not None:
            reasons[why] = reasons.get(why, 0) + 1
            continue
        row = row_of_observation(entry) if isinstance(entry, Observation) else dict(entry)
        assert row is not None
        if isinstance(entry, Observation) and name is not None:
            row["file"] = name
        rows.append(row)
    if problems:
        raise InputError(problems[:_MAX_PROBLEMS])
    return Observed(tuple(rows), tuple(f"{n} left out: {why}" for why, n in sorted(reasons.items())))


def _names(*names: str) -> frozenset[str]:
    return frozenset(word.lower() for name in names for word in (name, name.rstrip("/").rsplit("/", 1)[-1]))


def _elsewhere(entry: Observation | Row, machines: frozenset[str], models: frozenset[str]) -> str | None:
    """Why an entry is not of this machine or model; rows that do not say are taken to be."""
    if isinstance(entry, Observation):
        hardware, model = entry.hardware, entry.model
    else:
        hardware, model = str(entry.get("hardware") or ""), str(entry.get("model") or "")
    if hardware and not _names(hardware) & machines:
        return f"hardware {hardware}"
    if model and (" on a " in model or not _names(model) & models):
        return f"model {model}"
    return None
