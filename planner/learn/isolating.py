"""Fault isolation with launches: which differences between two command lines make one of them fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.domain import Launch
from planner.errors import InputError
from planner.learn.flags import Setting, apply_changes
from planner.learn.propose import SAME_FAULT
from planner.learn.trial import FLAKY_CAUSES, Result, Trial

__all__ = ["Judge"]


class Judge:
    """Answers ``passes`` of :func:`planner.learn.isolate.isolate` with launches.

    A set fails when it fails for the cause of the whole. It is run again before that is believed: ``confirm`` failures
    in a row where the cause is known, twice as many where a start may fail by itself.
    """

    def __init__(
        self, good: Launch, changes: Mapping[str, Setting], run: Callable[[Trial, str], Result], *, confirm: int = 2
    ) -> None:
        self.good = good
        self.changes = changes
        self.run = run
        self.confirm = confirm
        self.cause: str | None = None
        """Cause of the whole set's failure."""
        self.notes: list[str] = []

    def passes(self, wanted: frozenset[str]) -> bool | None:
        """Whether the launch with these changes is right; None where it cannot say."""
        if self.cause is None and wanted != frozenset(self.changes):
            whole = self._result(frozenset(self.changes))
            self.cause = whole.cause
        result = self._result(wanted)
        if self.cause is None:
            self.cause = result.cause
        if result.ok:
            return True
        if not wanted and not result.launched:
            raise InputError(f"the launch that works is refused: {result.detail}", "give one that starts with --good")
        if not result.launched or not _same(result.cause, self.cause):
            names = ", ".join(sorted(wanted)) or "no change"
            self.notes.append(f"{names}: {result.cause}, not {self.cause}: cannot say")
            return None if wanted else False
        return False

    def _result(self, wanted: frozenset[str]) -> Result:
        chosen = [change for name, change in self.changes.items() if name in wanted]
        launch = apply_changes(self.good, chosen)
        shown = {change.name: change.shown for change in chosen}
        trial = Trial.of(launch.argv, env=launch.env, knobs=shown)
        why = ", ".join(sorted(wanted)) or "no change"
        failures: list[Result] = []
        while True:
            result = self.run(trial, why)
            if result.ok or not result.launched:
                if failures and result.ok:
                    self.notes.append(f"{why}: {failures[0].cause}, then right: a flaky start")
                return result
            failures.append(result)
            known = [one for one in failures if one.cause not in FLAKY_CAUSES]
            if len(known) >= self.confirm or len(failures) >= 2 * self.confirm:
                return known[0] if known else result


def _same(cause: str, other: str | None) -> bool:
    return cause == other or any({cause, other} <= set(group) for group in SAME_FAULT)
