"""Two observations side by side: what was asked, what ran, what came out."""

from __future__ import annotations

from dataclasses import dataclass

from planner.domain import Observation

__all__ = ["Difference", "compare"]

_FIGURES = ("tok_per_s", "accept_len", "step_s", "ttft_s", "tpot_s", "power_w")
_PLACE = ("hardware", "model", "drafter", "engine_version", "engine_commit", "driver")
_TRAFFIC = ("concurrency", "context_tok", "output_tok", "temperature", "domain")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs. ``change_frac`` for figures: b / a - 1."""

    part: str
    """``place``, ``traffic``, ``argv``, ``env``, ``effective``, ``candidate``, ``outcome`` or ``figure``."""
    name: str
    a: str | None
    b: str | None
    change_frac: float | None = None
    within_spread: bool | None = None
    """Figures: whether the change is no larger than both spreads together; None when a spread is not known."""


def compare(a: Observation, b: Observation) -> list[Difference]:
    """Everything that differs, settings before figures."""
    found: list[Difference] = []

    def put(part: str, name: str, left: object, right: object) -> None:
        if left != right:
            found.append(Difference(part, name, _shown(left), _shown(right)))

    for part, names in (("place", _PLACE), ("traffic", _TRAFFIC)):
        for name in names:
            put(part, name, getattr(a, name), getattr(b, name))
    for flag in _merged(_flags(a.argv), _flags(b.argv)):
        put("argv", flag, _flags(a.argv).get(flag), _flags(b.argv).get(flag))
    for part in ("env", "effective"):
        left, right = dict(getattr(a, part)), dict(getattr(b, part))
        for name in _merged(left, right):
            put(part, name, left.get(name), right.get(name))
    if a.candidate is not None and b.candidate is not None:
        for name in type(a.candidate).model_fields:
            put("candidate", name, getattr(a.candidate, name), getattr(b.candidate, name))
    put("outcome", "cause", a.outcome.cause, b.outcome.cause)
    for name in _FIGURES:
        left, right = getattr(a, name), getattr(b, name)
        if left is None and right is None:
            continue
        change = right / left - 1.0 if left and right is not None else None
        spread = None
        if name == "tok_per_s" and change is not None and a.spread_frac is not None and b.spread_frac is not None:
            spread = abs(change) <= a.spread_frac + b.spread_frac
        found.append(Difference("figure", name, _shown(left), _shown(right), change, spread))
    return found


def _shown(value: object) -> str | None:
    return None if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _merged(left: dict[str, str], right: dict[str, str]) -> list[str]:
    return list(dict.fromkeys([*left, *right]))


def _flags(argv: tuple[str, ...]) -> dict[str, str]:
    """Flag -> value (empty for a switch), so that order does not matter."""
    flags: dict[str, str] = {}
    last = None
    for word in argv:
        if word.startswith("--"):
            last, _, value = word.partition("=")
            flags[last] = value
        elif last is not None:
            flags[last] = f"{flags[last]} {word}".strip()
    return flags
