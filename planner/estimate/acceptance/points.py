"""Points of an acceptance curve: read from tuples, mappings or profile points, and checked all at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real

import numpy as np

from planner._record import record
from planner.domain import AcceptPoint
from planner.errors import InputError, Problem, nearest_hint

__all__ = ["CurvePoint", "read_points"]

_FIELDS = ("budget", "accept_len", "rounds", "topk", "kind", "domain", "context_tok", "temperature", "bonus_counted")
_SAME_BUDGET_FACTOR = 1.15
"""Two runs at one budget on one traffic differ by up to 6 % in public data; beyond 15 % they are not one traffic."""


@record()
class CurvePoint:
    """One measured accept length, bonus token included."""

    budget: int
    accept_len: float
    rounds: int | None = None
    topk: int | None = None
    kind: str = "tree"
    domain: str = "unknown"
    context_tok: int | None = None
    temperature: float | None = None
    bonus_counted: bool | None = None


def _count(value: object, field: str, where: str, problems: list[Problem]) -> int | None:
    """A positive whole number, or None with a problem noted."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if math.isfinite(number) and number.is_integer():
        if number >= 1:
            return int(number)
        hint = "the budget excludes the root; a tree has at least 1 drafted node" if field == "budget" else None
        problems.append(Problem("must be at least 1", field=f"{where}.{field}", value=value, hint=hint))
        return None
    problems.append(Problem("must be a whole number", field=f"{where}.{field}", value=value))
    return None


def _fields(point: object, where: str, problems: list[Problem]) -> dict[str, object] | None:
    """The point as a mapping of known fields."""
    if isinstance(point, AcceptPoint):
        return {name: getattr(point, name) for name in _FIELDS}
    if isinstance(point, CurvePoint):
        return {name: getattr(point, name) for name in _FIELDS}
    if isinstance(point, Mapping):
        unknown = [name for name in point if name not in _FIELDS]
        for name in unknown:
            problems.append(Problem(f"unknown field {name!r}", field=where, hint=nearest_hint(str(name), _FIELDS)))
        missing = [name for name in ("budget", "accept_len") if name not in point]
        for name in missing:
            problems.append(Problem(f"{name} is missing", field=where))
        return None if unknown or missing else dict(point)
    if isinstance(point, np.ndarray) and point.ndim == 1:
        point = point.tolist()
    if isinstance(point, Sequence) and not isinstance(point, (str, bytes)) and len(point) in (2, 3):
        return dict(zip(_FIELDS, point, strict=False))
    problems.append(
        Problem(
            "a point is (budget, accept_len) or (budget, accept_len, rounds)",
            field=where,
            value=point,
            hint="or a mapping with these and topk, kind, domain, context_tok, temperature, bonus_counted",
        )
    )
    return None


def _read(point: object, where: str, *, kind: str, max_depth: int, problems: list[Problem]) -> CurvePoint | None:
    fields = _fields(point, where, problems)
    if fields is None:
        return None
    n_before = len(problems)
    budget = _count(fields["budget"], "budget", where, problems)
    optional = {}
    for name in ("rounds", "topk", "context_tok"):
        value = fields.get(name)
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        optional[name] = None if missing else _count(value, name, where, problems)
    point_kind = fields.get("kind") or kind
    if point_kind not in ("tree", "chain"):
        problems.append(Problem("kind is tree or chain", field=f"{where}.kind", value=point_kind))
    accept = fields["accept_len"]
    if not isinstance(accept, Real) or isinstance(accept, bool) or not math.isfinite(accept):
        problems.append(Problem("must be a number", field=f"{where}.accept_len", value=accept))
        return None
    accept_len = float(accept)
    if fields.get("bonus_counted") is False:
        accept_len += 1.0
    if len(problems) > n_before or budget is None:
        return None
    cap = 1 + min(budget, max_depth)
    if accept_len > cap + 1e-9:
        problems.append(
            Problem(
                f"an accept length of {accept_len:g} is above its cap of {cap} (budget {budget}, "
                f"paths of at most {max_depth} drafted tokens, and the bonus token)",
                field=f"{where}.accept_len",
                value=accept,
                hint="check block_size, whether the budget counts the root, whether the bonus token is counted twice",
            )
        )
        return None
    if accept_len <= 1:
        problems.append(
            Problem(
                f"an accept length of {accept_len:g} means that no drafted token was accepted",
                field=f"{where}.accept_len",
                value=accept,
                hint="a broken verify pass looks like this; so does a count without the bonus (bonus_counted=False)",
            )
        )
        return None
    temperature = fields.get("temperature")
    if temperature is not None and (not isinstance(temperature, Real) or isinstance(temperature, bool)):
        problems.append(Problem("must be a number", field=f"{where}.temperature", value=temperature))
        return None
    bonus = fields.get("bonus_counted")
    return CurvePoint(
        budget=budget,
        accept_len=accept_len,
        kind=str(point_kind),
        domain=str(fields.get("domain") or "unknown"),
        temperature=None if temperature is None else float(temperature),
        bonus_counted=None if bonus is None else bool(bonus),
        **optional,
    )


def _pooling(points: Sequence[CurvePoint], problems: list[Problem]) -> None:
    """Runs of different traffic or different counting are not one curve."""
    counted = {point.bonus_counted for point in points}
    if False in counted and len(counted) > 1:
        other = "count it" if True in counted else "do not say"
        problems.append(
            Problem(
                f"some points do not count the bonus token and others {other}: they are not pooled",
                field="points.bonus_counted",
                hint="fit them apart, or convert all to accept lengths with the bonus token and set bonus_counted=True",
            )
        )
    for field in ("domain", "temperature"):
        values = sorted({getattr(point, field) for point in points} - {"unknown", None}, key=str)
        if len(values) > 1:
            problems.append(
                Problem(
                    f"points of different {field} ({', '.join(map(str, values))}): a curve belongs to one traffic",
                    field=f"points.{field}",
                    hint="fit each apart; .at() carries a fit over to other conditions with a wider interval",
                )
            )


def _repeats(points: Sequence[CurvePoint], problems: list[Problem]) -> None:
    """Duplicated rows would count twice; contradictory ones belong to different traffic."""
    seen: dict[tuple[object, ...], list[tuple[int, CurvePoint]]] = {}
    for i, point in enumerate(points):
        seen.setdefault((point.budget, point.topk, point.kind), []).append((i, point))
    for group in seen.values():
        for (i, first), (j, second) in itertools.pairwise(group):
            if first == second:
                problems.append(
                    Problem(
                        f"points {i} and {j} are the same row (budget {first.budget}, accept_len {first.accept_len:g}) "
                        "and would count twice",
                        field=f"points[{j}]",
                        hint="drop one; two runs that agree differ in rounds or in the digits kept",
                    )
                )
        values = [point.accept_len for _, point in group]
        if max(values) > _SAME_BUDGET_FACTOR * min(values):
            rows = ", ".join(str(i) for i, _ in group)
            problems.append(
                Problem(
                    f"points {rows} contradict each other: accept lengths {min(values):g} and {max(values):g} at "
                    f"budget {group[0][1].budget}",
                    field="points",
                    hint="other prompts, or the bonus token counted in one only (a difference of 1); fit them apart",
                )
            )


def read_points(points: Iterable[object], *, kind: str, max_depth: int) -> tuple[CurvePoint, ...]:
    """Check points and bring them to one form (accept length with the bonus token).

    Args:
        points: tuples ``(budget, accept_len[, rounds])``, mappings, :class:`AcceptPoint` or :class:`CurvePoint`.
        kind: kind of the points that do not say theirs.
        max_depth: longest draft path (block_size - 1).

    Raises:
        InputError: every fault found, with the row it is in.
    """
    problems: list[Problem] = []
    rows = list(points)
    if not rows:
        raise InputError("no points: an acceptance curve needs at least one measured accept length")
    read = [_read(row, f"points[{i}]", kind=kind, max_depth=max_depth, problems=problems) for i, row in enumerate(rows)]
    good = tuple(point for point in read if point is not None)
    _pooling(good, problems)
    _repeats(good, problems)
    if problems:
        raise InputError(problems)
    return good
