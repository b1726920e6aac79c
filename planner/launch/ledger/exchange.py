"""Export to JSON lines, CSV and Parquet; import of JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from planner.domain import Observation
from planner.errors import InputError, MissingDataError, Problem

__all__ = ["ExportForm", "export", "read_jsonl"]

_FLAT = tuple(
    name
    for name in Observation.model_fields
    if name not in ("argv", "env", "candidate", "metrics", "effective", "outcome")
)
_COLUMNS = (*_FLAT, "cause", "detail", "argv", "env", "candidate", "metrics", "effective")
"""Columns of CSV and Parquet; the last five are JSON texts."""
_BATCH = 10_000


class ExportForm(StrEnum):
    """Forms of an export."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def export(observations: Iterable[Observation], form: ExportForm, target: IO[str] | Path) -> int:
    """Writes observations to a stream (JSON lines, CSV) or a path (Parquet). Returns how many.

    Raises:
        MissingDataError: Parquet was asked for and pyarrow is not installed.
        InputError: Parquet to a stream.
    """
    if form is ExportForm.PARQUET:
        if not isinstance(target, Path):
            raise InputError("Parquet is written to a file", "give --out FILE")
        return _parquet(observations, target)
    if isinstance(target, Path):
        with target.open("w", encoding="utf-8", newline="") as stream:
            return export(observations, form, stream)
    n = 0
    if form is ExportForm.JSONL:
        for observation in observations:
            target.write(observation.model_dump_json(exclude_defaults=True) + "\n")
            n += 1
        return n
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for observation in observations:
        row = _row(observation)
        writer.writerow(["" if row[name] is None else row[name] for name in _COLUMNS])
        n += 1
    return n


def _row(observation: Observation) -> dict[str, Any]:
    data = observation.model_dump(mode="json")
    row = {name: data[name] for name in _FLAT}
    row["cause"], row["detail"] = observation.outcome.cause, observation.outcome.detail
    for name in ("argv", "env", "candidate", "metrics", "effective"):
        row[name] = json.dumps(data[name], separators=(",", ":")) if data[name] else None
    return row


def _parquet(observations: Iterable[Observation], target: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDataError("Parquet needs pyarrow, which is not installed", "pip install pyarrow") from None
    numbers = {name: pa.float64() for name in ("tok_per_s", "accept_len", "step_s", "ttft_s", "tpot_s", "power_w")}
    numbers |= {name: pa.float64() for name in ("temperature", "spread_frac")}
    numbers |= {
        name: pa.int64() for name in ("schema_version", "concurrency", "context_tok", "output_tok", "n_repeats")
    }
    schema = pa.schema([(name, numbers.get(name, pa.string())) for name in _COLUMNS])
    n = 0
    with pq.ParquetWriter(target, schema) as writer:
        for batch in _batches(observations):
            writer.write_table(pa.Table.from_pylist([_row(observation) for observation in batch], schema=schema))
            n += len(batch)
    return n


def _batches(observations: Iterable[Observation]) -> Iterator[list[Observation]]:
    batch: list[Observation] = []
    for observation in observations:
        batch.append(observation)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def read_jsonl(stream: IO[str], *, name: str) -> list[Observation]:
    """Observations of a JSON-lines file.

    Raises:
        InputError: lines that are none; all of them (at most 20 named).
    """
    observations, problems = [], []
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            observations.append(Observation.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"])
            problems.append(Problem(first["msg"], file=name, line=number, field=place or None))
    if problems:
        raise InputError(problems[:20])
    if not observations:
        raise InputError([Problem("no observations", file=name, hint="give a file of `plan-config ledger export`")])
    return observations
