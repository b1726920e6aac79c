"""repair(): the smallest change of a launch file that clears every error, with layout and comments kept.

The candidates are the fixes of the findings; the search (:mod:`planner.search.repair`) combines them and judges each
combined text anew. An edit that needs a person's look costs more than any number of safe ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from planner._record import record
from planner.domain import Finding, FixEdit, Level, Limit
from planner.errors import InputError
from planner.parse import Launcher, ParsedFile
from planner.parse.edit import unified_diff
from planner.review.checking import Reviewed, review_file
from planner.review.context import build_contexts
from planner.review.editing import edit_file
from planner.review.judge import judge
from planner.review.predicting import Figures, predict_launch
from planner.review.subject import Subject
from planner.review.suppress import Settings, set_aside
from planner.rules.base import Place
from planner.rules.context import RuleContext
from planner.search.repair import Step, smallest_repair

__all__ = ["Repaired", "repair"]

UNSAFE_COST = 100
"""An edit that needs a person's look costs as much as this many safe ones."""


@record()
class Change:
    """Edits of one finding at one launch of the file."""

    launch: int
    code: str
    edits: tuple[FixEdit, ...]
    safe: bool


@record()
class Repaired:
    """A repaired file."""

    before: ParsedFile
    after: ParsedFile
    changes: tuple[Change, ...]
    left: tuple[Finding, ...]
    """Errors that no known edit clears."""
    proved_smallest: bool
    """Whether every cheaper combination of the candidates was judged."""
    cost: tuple[Figures | None, Figures | None] = (None, None)
    """Predicted figures before and after; None where there is no ground for them."""
    no_cost: str | None = None
    """Why there are no figures."""

    @property
    def text(self) -> str:
        """The repaired text."""
        return self.after.text

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty when nothing changes."""
        return unified_diff(self.before.text, self.after.text, name=self.before.name.lstrip("/"))

    @property
    def complete(self) -> bool:
        """Whether no error is left."""
        return not self.left

    @property
    def safe(self) -> bool:
        """Whether no edit needs a person's look."""
        return all(change.safe for change in self.changes)


@record()
class _State:
    text: str


class _Bench:
    """Judges texts, each once."""

    def __init__(
        self, parsed: ParsedFile, subject: Subject, limits: Sequence[Limit], settings: Settings | None
    ) -> None:
        self.subject, self.limits, self.settings = subject, limits, settings
        self.files = {parsed.text: parsed}
        self.judged: dict[str, tuple[tuple[RuleContext, ...], list[tuple[int, Finding]]]] = {}

    def errors(self, text: str) -> tuple[tuple[RuleContext, ...], list[tuple[int, Finding]]]:
        """Contexts, and errors with the index of their launch (among all launches of the file)."""
        if text in self.judged:
            return self.judged[text]
        parsed = self.files[text]
        places = [at for at, launch in enumerate(parsed.launches) if launch.launcher is not Launcher.ROUTER]
        launches = [parsed.launches[at] for at in places]
        contexts = build_contexts(launches, self.subject)
        found: list[tuple[int, Finding]] = []
        for number, (at, context) in enumerate(zip(places, contexts, strict=True)):
            start = Place(launches[number].span.line, launches[number].span.column)
            findings, _ = judge([context], [start], file=parsed.name, limits=self.limits, first=number == 0)
            kept, _, _ = set_aside(
                findings,
                inline=parsed.suppressions,
                spans=[(one.span.line, one.span.end_line) for one in launches],
                settings=self.settings,
            )
            found += [(at, one) for one in kept if one.level is Level.ERROR]
        everyone = tuple(_spread(contexts, places, len(parsed.launches)))
        self.judged[text] = (everyone, found)
        return self.judged[text]


def _spread(contexts: Sequence[RuleContext], places: Sequence[int], size: int) -> Iterator[RuleContext]:
    """Contexts by index of the launch in the file; a router borrows its neighbour's."""
    held = dict(zip(places, contexts, strict=True))
    for at in range(size):
        yield held.get(at) or contexts[0]


def repair(
    parsed: ParsedFile,
    *,
    subject: Subject,
    limits: Sequence[Limit] = (),
    settings: Settings | None = None,
    allow_unsafe: bool = True,
    predict: Callable[[RuleContext], tuple[Figures | None, str | None]] = predict_launch,
) -> Repaired:
    """Repairs one file. A file without errors comes back as it is.

    Args:
        allow_unsafe: whether edits that need a person's look may be used.
    """
    bench = _Bench(parsed, subject, limits, settings)

    def candidates(state: _State) -> Iterator[Step[_State, Change]]:
        contexts, errors = bench.errors(state.text)
        current = bench.files[state.text]
        offered: set[tuple[object, ...]] = set()
        for at, finding in errors:
            fix = finding.fix
            if fix is None or not fix.edits or (not fix.safe and not allow_unsafe):
                continue
            key = (at, fix.edits)
            if key in offered:
                continue
            offered.add(key)
            try:
                edited = edit_file(current, at, fix.edits, contexts[at])
            except InputError:
                continue
            if edited.text == state.text or (edited.problems and not current.problems):
                continue
            bench.files[edited.text] = edited
            price = len(fix.edits) if fix.safe else UNSAFE_COST * len(fix.edits)
            yield Step(price, Change(at, finding.code, fix.edits, fix.safe), _State(edited.text))

    found = smallest_repair(
        _State(parsed.text),
        n_faults=lambda state: len(bench.errors(state.text)[1]),
        candidates=candidates,
    )
    after = bench.files[found.state.text]
    contexts_before, _ = bench.errors(parsed.text)
    contexts_after, left = bench.errors(after.text)
    figures: tuple[Figures | None, Figures | None] = (None, None)
    why: str | None = None
    if found.edits:
        at = found.edits[0].launch
        first, why = predict(contexts_before[at])
        second, why_after = predict(contexts_after[min(at, len(contexts_after) - 1)])
        figures, why = (first, second), why or why_after
    return Repaired(
        before=parsed,
        after=after,
        changes=found.edits,
        left=tuple(one for _, one in left),
        proved_smallest=found.complete or found.exhausted,
        cost=figures,
        no_cost=why,
    )


def recheck(repaired: Repaired, *, subject: Subject, limits: Sequence[Limit] = ()) -> Reviewed:
    """The review of the repaired text."""
    return review_file(repaired.after, subject=subject, limits=limits)
