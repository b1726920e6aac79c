"""Exceptions of the planner.

::

    PlannerError                    something the caller can understand and act on
    ├── InputError                  bad input: one or more Problems, all reported at once (exit code 2)
    ├── DomainError                 a prediction was asked outside the domain of its model
    ├── MissingDataError            there is no ground for a number; names what to measure
    └── EngineRefusal               the engine itself would refuse this launch (its own error, named as such)

An infeasible request is not an exception: it is a :class:`planner.domain.Plan` with status ``infeasible``.
Anything that is not a ``PlannerError`` is a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner._record import record

__all__ = [
    "DomainError",
    "EngineRefusal",
    "InputError",
    "MissingDataError",
    "PlannerError",
    "Problem",
    "nearest",
    "nearest_hint",
]


class PlannerError(Exception):
    """Base of all expected errors: ``message`` says what is wrong, ``hint`` the way out."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


@record()
class Problem:
    """One thing wrong with an input, with everything needed to find and mend it."""

    message: str
    file: str | None = None
    line: int | None = None
    field: str | None = None
    value: object = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = f"{self.file}:{self.line}: " if self.line is not None else f"{self.file}: "
        name = f"{self.field}: " if self.field else ""
        text = f"{place}{name}{self.message}"
        return f"{text}; {self.hint}" if self.hint else text


class InputError(PlannerError):
    """Bad input. ``problems`` holds every fault that was found, not only the first."""

    def __init__(self, problems: Iterable[Problem] | str, hint: str | None = None) -> None:
        if isinstance(problems, str):
            problems = (Problem(problems, hint=hint),)
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class DomainError(PlannerError):
    """A prediction was asked for outside the domain in which its model has grounds."""


class MissingDataError(PlannerError):
    """There is no ground for a number. The hint names the measurement that would give it."""


class EngineRefusal(PlannerError):
    """The engine would raise at start. ``error_type`` and ``message`` are the engine's own; ``source`` is file:line."""

    def __init__(self, error_type: str, message: str, source: str | None = None) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.source = source

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return super().__str__() or f"the engine refuses this launch: {self.error_type} without a message{where}"


def nearest(word: str, known: Sequence[str], n: int = 3) -> list[str]:
    """The ``n`` names of ``known`` that look most like ``word``, best first."""
    import difflib

    return difflib.get_close_matches(word, known, n=n, cutoff=0.5)


def nearest_hint(word: str, known: Sequence[str]) -> str:
    """``did you mean ...?`` when something is near, otherwise the whole list."""
    close = nearest(word, known)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known: {', '.join(known)}"
