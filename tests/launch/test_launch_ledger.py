"""The ledger: append-only, whole or not at all, two writers, exports, refusals."""

from __future__ import annotations

import io
import json
import multiprocessing
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.domain import Candidate, Outcome
from planner.errors import InputError, MissingDataError
from planner.launch.ledger import Filter, Ledger, LedgerBusyError
from planner.launch.ledger.compare import compare
from planner.launch.ledger.exchange import ExportForm, export, read_jsonl
from planner.launch.ledger.schema import APPLICATION_ID
from tests.launch.launch_kit import observation


def test_round_trip(tmp_path: Path) -> None:
    rows = [observation(n) for n in range(5)]
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        assert ledger.append(rows) == 5
        assert list(ledger.each()) == rows
        assert ledger.last(2) == rows[:2:-1]
        assert ledger.get("obs-3") == rows[3]
        (total,) = ledger.totals()
        assert (total.n, total.best_tok_per_s) == (5, 104.0)


def test_filters(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.append(
            [observation(1), observation(2, hardware="b300"), observation(3, outcome=Outcome(cause="oom-capture"))]
        )
        assert [one.id for one in ledger.each(Filter(hardware="b300"))] == ["obs-2"]
        assert [one.id for one in ledger.each(Filter(cause="ok"))] == ["obs-1", "obs-2"]
        assert {row.cause for row in ledger.totals(Filter(hardware="h200"))} == {"ok", "oom-capture"}


def test_append_is_all_or_nothing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.append([observation(1)])
        with pytest.raises(InputError):
            ledger.append([observation(2), observation(1)])
        assert [one.id for one in ledger.each()] == ["obs-1"]


@pytest.mark.parametrize("statement", ["UPDATE observations SET cause = 'ok'", "DELETE FROM observations"])
def test_nothing_changes_or_goes(tmp_path: Path, statement: str) -> None:
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.append([observation(1)])
    connection = sqlite3.connect(tmp_path / "l.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def _write_many(path: str, first: int) -> None:
    with Ledger(path, create=True) as ledger:
        for number in range(first, first + 40):
            ledger.append([observation(number)])


def test_writers_at_the_same_time(tmp_path: Path) -> None:
    """Three processes make the ledger and write to it at once."""
    path = str(tmp_path / "l.db")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(path, 1000 * number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    with Ledger(path) as ledger:
        assert ledger.totals()[0].n == 120
        assert len({one.id for one in ledger.each()}) == 120


def test_locked(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger(path, create=True) as ledger:
        ledger.append([observation(1)])
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Ledger(path, busy_timeout_s=0.1) as ledger:
        assert ledger.get("obs-1")
        with pytest.raises(LedgerBusyError, match="locked"):
            ledger.append([observation(2)])
    holder.close()


def test_refusals_change_nothing(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to be read as one")
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE x (y)")
    connection.commit()
    connection.close()
    newer = tmp_path / "newer.db"
    with Ledger(newer, create=True):
        pass
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    torn = tmp_path / "torn.db"
    torn.write_bytes(newer.read_bytes()[:300])
    for path, words in (
        (text, "not a ledger"),
        (other, "not a ledger"),
        (newer, "version 99"),
        (torn, "not a ledger"),
        (tmp_path, "folder"),
        (tmp_path / "none" / "l.db", "does not exist"),
    ):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(InputError, match=words):
            Ledger(path, create=True)
        assert (path.read_bytes() if path.is_file() else None) == before
    with pytest.raises(InputError, match="no such ledger"):
        Ledger(tmp_path / "absent.db")
    assert not (tmp_path / "absent.db").exists()


def test_application_id_is_in_the_header(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db", create=True):
        pass
    assert (tmp_path / "l.db").read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")


def test_export_and_import(tmp_path: Path) -> None:
    rows = [observation(1), observation(2, outcome=Outcome(cause="garbage-output", detail="0 of 10"))]
    text = io.StringIO()
    assert export(rows, ExportForm.JSONL, text) == 2
    assert read_jsonl(io.StringIO(text.getvalue()), name="x") == rows
    table = io.StringIO()
    export(rows, ExportForm.CSV, table)
    assert table.getvalue().count("\n") == 3
    assert "garbage-output" in table.getvalue()
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        assert ledger.append(rows, skip_known=True) == 2
        assert ledger.append(rows, skip_known=True) == 0
        with pytest.raises(InputError, match="another content"):
            ledger.append([observation(1, tok_per_s=7.0)], skip_known=True)


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [observation(n) for n in range(3)]
    assert export(rows, ExportForm.PARQUET, tmp_path / "x.parquet") == 3
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table.column("tok_per_s").to_pylist() == [100.0, 101.0, 102.0]


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDataError, match="pip install pyarrow"):
        export([observation(1)], ExportForm.PARQUET, tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()


def test_bad_lines_are_all_named() -> None:
    with pytest.raises(InputError) as caught:
        read_jsonl(io.StringIO('{"id": 1}\n\nnonsense\n'), name="x.jsonl")
    assert [problem.line for problem in caught.value.problems] == [1, 3]


def test_compare() -> None:
    a = observation(1, candidate=_candidate(8))
    b = observation(2, candidate=_candidate(16), argv=("python", "--tp-size", "4", "--x"), tok_per_s=102.0)
    found = {(one.part, one.name): one for one in compare(a, b)}
    assert (found["argv", "--tp-size"].a, found["argv", "--tp-size"].b) == ("8", "4")
    assert found["candidate", "max_running_requests"].b == "16"
    assert found["figure", "tok_per_s"].within_spread is True
    assert ("place", "hardware") not in found
    assert compare(a, a)[0].part == "figure"


def _candidate(running: int) -> Candidate:
    return Candidate(
        tp_size=8,
        max_running_requests=running,
        cuda_graph_max_bs=8,
        attention_backend="triton",
        mem_fraction_static=0.8,
    )


@settings(max_examples=30, deadline=None)
@given(
    speed=st.floats(0.001, 1e9),
    detail=st.text(max_size=40),
    env=st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=3),
)
def test_any_observation_survives(
    tmp_path_factory: pytest.TempPathFactory, speed: float, detail: str, env: dict[str, str]
) -> None:
    row = observation(1, tok_per_s=speed, outcome=Outcome(cause="x", detail=detail), env=tuple(env.items()))
    try:
        json.dumps(row.model_dump()).encode("utf-8")
        row.model_dump_json()
    except Exception:
        return
    with Ledger(tmp_path_factory.mktemp("h") / "l.db", create=True) as ledger:
        ledger.append([row])
        assert list(ledger.each()) == [row]
