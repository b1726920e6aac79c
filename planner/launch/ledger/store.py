"""Opening, writing and reading a ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from planner.domain import Observation
from planner.errors import InputError, PlannerError, Problem
from planner.launch.ledger.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION

__all__ = ["Filter", "Ledger", "LedgerBusyError", "Row"]

BUSY_TIMEOUT_S = 10.0
"""How long a writer waits for another one."""
_HEADER = b"SQLite format 3\x00"
_INSERT = (
    "INSERT INTO observations (id, recorded_at, hardware, model, engine_version, cause, concurrency, context_tok,"
    " tok_per_s, accept_len, step_s, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class LedgerBusyError(PlannerError):
    """Another writer holds the ledger, or the disk is full. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Row:
    """Counts of one place and cause."""

    hardware: str
    model: str
    engine_version: str
    cause: str
    n: int
    best_tok_per_s: float | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which observations. None: all."""

    hardware: str | None = None
    model: str | None = None
    engine_version: str | None = None
    cause: str | None = None
    ids: tuple[str, ...] = ()

    def where(self) -> tuple[str, list[object]]:
        """SQL condition and its values."""
        terms, values = [], []
        for name in ("hardware", "model", "engine_version", "cause"):
            if (value := getattr(self, name)) is not None:
                terms.append(f"{name} = ?")
                values.append(value)
        if self.ids:
            terms.append(f"id IN ({', '.join('?' * len(self.ids))})")
            values += self.ids
        return (" WHERE " + " AND ".join(terms) if terms else ""), values


class Ledger:
    """One ledger file. A context manager.

    Several processes may read and write at a time (write-ahead log); a write is one transaction, so readers and a crash
    see all of it or nothing.
    """

    def __init__(self, path: Path | str, *, create: bool = False, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """Opens ``path``.

        Raises:
            InputError: there is no such file (and ``create`` is False), it is no ledger, or it is newer than this
                program.
            LedgerBusyError: another writer holds it.
        """
        import sqlite3

        self.path = Path(path)
        self._check_file(create)
        with self._told():
            self._connection = sqlite3.connect(self.path, timeout=busy_timeout_s, isolation_level=None)
        try:
            with self._told():
                self._prepare(create)
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def refuse(cls, path: Path | str) -> None:
        """Says early what opening ``path`` for writing would say late. Makes nothing.

        Raises:
            InputError: it is no ledger, is newer than this program, or has no folder.
        """
        path = Path(path)
        if path.exists() and (path.is_dir() or path.stat().st_size):
            with cls(path):
                return
        if not path.parent.is_dir():
            raise InputError([Problem("its folder does not exist", file=str(path), hint="make the folder first")])

    def _check_file(self, create: bool) -> None:
        name = str(self.path)
        if self.path.is_dir():
            raise InputError([Problem("a folder, not a ledger", file=name)])
        if not self.path.exists():
            if not create:
                raise InputError([Problem("there is no such ledger", file=name, hint="`launch --ledger` makes one")])
            if not self.path.parent.is_dir():
                raise InputError([Problem("its folder does not exist", file=name, hint="make the folder first")])
            return
        with self.path.open("rb") as stream:
            head = stream.read(len(_HEADER))
        if head and head != _HEADER:
            raise InputError([self._not_one()])

    def _not_one(self) -> Problem:
        return Problem("not a ledger", file=str(self.path), hint="give a file that plan-config wrote, or a new name")

    def _prepare(self, create: bool) -> None:
        run = self._connection.execute
        application = run("PRAGMA application_id").fetchone()[0]
        version = run("PRAGMA user_version").fetchone()[0]
        if application == APPLICATION_ID:
            if version > SCHEMA_VERSION:
                raise InputError(
                    [
                        Problem(
                            f"ledger of version {version}; this program knows version {SCHEMA_VERSION}",
                            file=str(self.path),
                            hint="use a newer plan-config; nothing was changed",
                        )
                    ]
                )
            run("PRAGMA synchronous = FULL")
            return
        n_tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != 0 or n_tables or version or not create:
            raise InputError([self._not_one()])
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("BEGIN IMMEDIATE")
        try:
            # Another process may have made it while this one waited for the lock.
            if run("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                for statement in _statements(SCHEMA):
                    run(statement)
                run(f"PRAGMA application_id = {APPLICATION_ID}")
                run(f"PRAGMA user_version = {SCHEMA_VERSION}")
            run("COMMIT")
        except BaseException:
            run("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors as ours. Programming errors stay what they are."""
        import sqlite3

        try:
            yield
        except sqlite3.IntegrityError as error:
            raise InputError([Problem(str(error), file=str(self.path))]) from None
        except sqlite3.OperationalError as error:
            text = str(error)
            if "locked" in text or "busy" in text:
                hint = "another program writes to it; try again"
            elif "full" in text or "readonly" in text or "unable to open" in text or "disk I/O" in text:
                hint = "check the disk and the rights of the file and its folder"
            else:
                raise
            raise LedgerBusyError(f"{self.path}: {text}", hint) from None
        except sqlite3.DatabaseError as error:
            if type(error) is sqlite3.DatabaseError:
                raise InputError([self._not_one()]) from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    # -- writing -----------------------------------------------------------------------------------------------------
    def append(self, observations: Iterable[Observation], *, skip_known: bool = False) -> int:
        """Adds observations in one transaction: all or none. Returns how many were added.

        Args:
            skip_known: leave out those whose id is there with the same content (for import).

        Raises:
            InputError: an id is there already (with another content, if ``skip_known``).
            LedgerBusyError: the ledger could not be written.
        """
        run = self._connection.execute
        n_added = 0
        with self._told():
            run("BEGIN IMMEDIATE")
            try:
                for observation in observations:
                    body = observation.model_dump_json(exclude_defaults=True)
                    if skip_known and self._known(observation.id, body):
                        continue
                    run(
                        _INSERT,
                        (
                            observation.id,
                            observation.recorded_at,
                            observation.hardware,
                            observation.model,
                            observation.engine_version,
                            observation.outcome.cause,
                            observation.concurrency,
                            observation.context_tok,
                            observation.tok_per_s,
                            observation.accept_len,
                            observation.step_s,
                            body,
                        ),
                    )
                    n_added += 1
                run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    run("ROLLBACK")
                raise
        return n_added

    def _known(self, identifier: str, body: str) -> bool:
        row = self._connection.execute("SELECT body FROM observations WHERE id = ?", (identifier,)).fetchone()
        if row is None:
            return False
        if row[0] != body:
            problem = Problem(
                "is in the ledger with another content", file=str(self.path), field="id", value=identifier,
                hint="observations do not change; give the other one a new id",
            )  # fmt: skip
            raise InputError([problem])
        return True

    # -- reading -----------------------------------------------------------------------------------------------------
    def totals(self, chosen: Filter | None = None) -> list[Row]:
        """Counts by place and cause."""
        where, values = (chosen or Filter()).where()
        with self._told():
            found = self._connection.execute(
                f"SELECT hardware, model, engine_version, cause, n, best_tok_per_s FROM totals{where}"
                " ORDER BY hardware, model, engine_version, cause",
                values,
            )
            return [Row(*row) for row in found]

    def last(self, n: int, chosen: Filter | None = None) -> list[Observation]:
        """The newest ``n``, newest first."""
        where, values = (chosen or Filter()).where()
        with self._told():
            found = self._connection.execute(
                f"SELECT body FROM observations{where} ORDER BY seq DESC LIMIT ?", [*values, n]
            )
            return [self._read(row) for row in found]

    def each(self, chosen: Filter | None = None) -> Iterator[Observation]:
        """All of them, oldest first, one at a time."""
        where, values = (chosen or Filter()).where()
        with self._told():
            for row in self._connection.execute(f"SELECT body FROM observations{where} ORDER BY seq", values):
                yield self._read(row)

    def get(self, identifier: str) -> Observation:
        """One observation.

        Raises:
            InputError: there is none with this id.
        """
        found = self.last(1, Filter(ids=(identifier,)))
        if not found:
            hint = "`plan-config ledger show` lists them"
            problem = Problem("no such observation", file=str(self.path), field="id", value=identifier, hint=hint)
            raise InputError([problem])
        return found[0]

    def _read(self, row: Sequence[Any]) -> Observation:
        try:
            return Observation.model_validate_json(row[0])
        except ValidationError as error:
            raise InputError([Problem(f"an observation cannot be read: {error}", file=str(self.path))]) from None


def _statements(script: str) -> Iterator[str]:
    """Single statements of a script (``executescript`` would commit the transaction)."""
    import sqlite3

    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if statement.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
