"""Tables of the ledger. What is queried has a column; the observation itself is its JSON."""

from __future__ import annotations

__all__ = ["APPLICATION_ID", "SCHEMA", "SCHEMA_VERSION"]

APPLICATION_ID = 0x504C4344
"""``PLCD`` in the header of the file (PRAGMA application_id): tells a ledger from any other SQLite file."""
SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE observations (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    recorded_at TEXT,
    hardware TEXT NOT NULL,
    model TEXT NOT NULL,
    engine_version TEXT NOT NULL,
    cause TEXT NOT NULL,
    concurrency INTEGER,
    context_tok INTEGER,
    tok_per_s REAL,
    accept_len REAL,
    step_s REAL,
    body TEXT NOT NULL CHECK (json_valid(body))
);
CREATE INDEX observations_by_place ON observations (hardware, model, cause);
CREATE INDEX observations_by_cause ON observations (cause);
CREATE TABLE totals (
    hardware TEXT NOT NULL,
    model TEXT NOT NULL,
    engine_version TEXT NOT NULL,
    cause TEXT NOT NULL,
    n INTEGER NOT NULL,
    best_tok_per_s REAL,
    PRIMARY KEY (hardware, model, engine_version, cause)
) WITHOUT ROWID;
CREATE TRIGGER observations_are_counted AFTER INSERT ON observations BEGIN
    INSERT INTO totals VALUES (new.hardware, new.model, new.engine_version, new.cause, 1, new.tok_per_s)
    ON CONFLICT DO UPDATE SET
        n = n + 1,
        best_tok_per_s = CASE
            WHEN excluded.best_tok_per_s IS NULL THEN best_tok_per_s
            WHEN best_tok_per_s IS NULL THEN excluded.best_tok_per_s
            ELSE max(best_tok_per_s, excluded.best_tok_per_s)
        END;
END;
CREATE TRIGGER observations_do_not_change BEFORE UPDATE ON observations BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: an observation does not change');
END;
CREATE TRIGGER observations_do_not_go BEFORE DELETE ON observations BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: an observation does not go');
END;
"""
"""``totals`` is kept by a trigger, so that an overview does not read every observation."""
