"""The ledger: one SQLite file of observations that only grows. See docs/ledger.md."""

from __future__ import annotations

from planner.launch.ledger.store import Filter, Ledger, LedgerBusyError, Row

__all__ = ["Filter", "Ledger", "LedgerBusyError", "Row"]
