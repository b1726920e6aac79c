"""A limit's interval narrowed by bisection, with failures confirmed so that a flaky start is never called a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from planner.domain import Value
from planner.errors import InputError
from planner.learn.trial import Result

__all__ = ["Probe", "ProbeStep", "probe"]

CONFIRM = 3
"""Failures in a row, without one success, before a value counts as bad. A true limit fails every time; a start that
fails one time in five by itself does so three times in a row in one case of 125: enough to go on, not to say so."""
CONFIRM_END = 4
"""Further failures asked of the lowest bad value at the end: seven in a row in all. At one flaky start in five that
happens to a good value in one probe of 78,000."""
RESOLUTION_FRAC = 0.05
"""The interval is narrow enough when known_bad / known_good is within this of 1."""


class ProbeStep(Value):
    """One value and its runs."""

    value: float
    results: tuple[Result, ...]

    @property
    def good(self) -> bool:
        return any(result.ok for result in self.results)


class Probe(Value):
    """The narrowed interval and every run behind it."""

    known_good: float
    known_bad: float | None
    """None: nothing failed."""
    causes: tuple[str, ...]
    """Causes of the failures at known_bad."""
    steps: tuple[ProbeStep, ...]
    flaky: tuple[float, ...]
    """Values that failed and then ran: not a limit."""
    note: str = ""

    @property
    def n_launches(self) -> int:
        return sum(len(step.results) for step in self.steps)


def probe(
    good: float,
    bad: float,
    values: Sequence[float],
    run: Callable[[float], Result],
    *,
    resolution_frac: float = RESOLUTION_FRAC,
    max_launches: int | None = None,
) -> Probe:
    """Bisect between a known good and a known bad value.

    Args:
        good: largest value known to run (or smallest, for a lower bound: ``bad`` below ``good``).
        bad: nearest value known to fail.
        values: values that a launch can realise; those strictly between are tried.
        run: one launch at a value.
        resolution_frac: stop when the two ends are this close.
        max_launches: stop after so many launches with what is known.

    Raises:
        InputError: no value can be tried between the two.
    """
    inside = sorted(value for value in set(values) if min(good, bad) < value < max(good, bad))
    if not inside:
        raise InputError(
            f"no launch realises a value between {good:g} and {bad:g}",
            "the interval is as narrow as the settings allow",
        )
    if bad < good:
        inside.reverse()
    steps: list[ProbeStep] = []
    flaky: list[float] = []
    low, high = good, bad
    confirmed: float | None = None

    def spent() -> int:
        return sum(len(step.results) for step in steps)

    def over() -> bool:
        return max_launches is not None and spent() >= max_launches

    def attempt(value: float, times: int) -> ProbeStep:
        results: list[Result] = []
        already = spent()
        while len(results) < times and (max_launches is None or already + len(results) < max_launches):
            results.append(run(value))
            if results[-1].ok:
                break
        step = ProbeStep(value=value, results=tuple(results))
        steps.append(step)
        if step.good and len(results) > 1:
            flaky.append(value)
        return step

    while not over():
        open_values = [value for value in inside if min(low, high) < value < max(low, high)]
        if not open_values or abs(math.log(high / low)) <= math.log1p(resolution_frac):
            if confirmed == high or high == bad:
                break
            # The lowest bad value must hold once more before it is called one.
            step = attempt(high, CONFIRM_END)
            if not step.good:
                confirmed = high if len(step.results) == CONFIRM_END else None
                break
            low, high = high, next((s.value for s in _failed(steps, beyond=high, upward=bad > good)), bad)
            continue
        middle = min(open_values, key=lambda value: abs(math.log(value) - 0.5 * (math.log(low) + math.log(high))))
        step = attempt(middle, CONFIRM)
        if not step.results:
            break
        if step.good:
            low = middle
        elif len(step.results) >= CONFIRM:
            high = middle
    if high != bad and confirmed != high:
        note = f"{high:g} failed {CONFIRM} times; the launches ran out before that was confirmed"
        return _finished(low, bad, steps, flaky, note)
    return _finished(low, high, steps, flaky, "")


def _failed(steps: Sequence[ProbeStep], *, beyond: float, upward: bool) -> list[ProbeStep]:
    """Failed steps beyond a value, nearest first."""
    found = [step for step in steps if not step.good and ((step.value > beyond) if upward else (step.value < beyond))]
    return sorted(found, key=lambda step: abs(step.value - beyond))


def _finished(low: float, high: float, steps: Sequence[ProbeStep], flaky: Sequence[float], note: str) -> Probe:
    causes = [result.cause for step in steps if step.value == high for result in step.results if not result.ok]
    return Probe(
        known_good=low,
        known_bad=high,
        causes=tuple(dict.fromkeys(causes)),
        steps=tuple(steps),
        flaky=tuple(dict.fromkeys(flaky)),
        note=note,
    )
