"""Which launches narrow a limit's interval: one setting of a plan is varied, and every other limit is kept.

A value of a limited quantity becomes a launch through the one setting that moves it. Where the plan itself cannot be
varied without breaking another limit, fewer requests are admitted in all launches alike; where that does not help
either, the probe is refused, unless the other limit is lifted with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.domain import Candidate, Limit, LimitShape, Speculation
from planner.domain.table import CandidateTable
from planner.errors import EngineRefusal, InputError, Problem
from planner.learn.planned import Planned
from planner.learn.trial import Trial
from planner.limits import LimitContext, evaluate_limit, holds_in_plan, quantity

__all__ = ["ProbePlan", "plan_probe"]

KNOB_OF = {
    "verify_rows_per_rank": "max_running_requests",
    "verify_rows_x_heads_per_rank": "max_running_requests",
    "max_running_requests": "max_running_requests",
    "cuda_graph_max_bs": "max_running_requests",
    "q_len": "budget",
    "budget": "budget",
    "ep_size": "ep_size",
    "topk": "topk",
    "page_size": "page_size",
    "mem_fraction_static": "mem_fraction_static",
}
"""Setting that moves a quantity while everything else stands."""


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """What a probe will run."""

    limit: Limit
    good: float
    bad: float
    knob: str
    base: Candidate
    """The plan, with fewer requests where another limit asks for it."""
    trials: Mapping[float, Trial]
    """Value of the quantity -> launch, strictly between the two ends."""
    notes: tuple[str, ...] = ()


def plan_probe(planned: Planned, limit: Limit, *, bad: float | None = None) -> ProbePlan:
    """The launches between a limit's ends.

    Args:
        bad: where to end when the limit has no known bad value.

    Raises:
        InputError: the limit has no interval, is silent for this plan, nothing lies between its ends, or every launch
            there would break another limit.
    """
    if limit.shape not in (LimitShape.AT_MOST, LimitShape.AT_LEAST) or limit.quantity is None:
        raise InputError(
            f"{limit.id} has no interval to narrow", "`plan-config isolate` tells which settings are guilty"
        )
    if limit.quantity not in KNOB_OF:
        raise InputError(
            f"no single setting of a launch moves {limit.quantity}", f"probe one of {', '.join(sorted(KNOB_OF))}"
        )
    end = limit.known_bad if limit.known_bad is not None else bad
    assert limit.known_good is not None
    if end is None:
        raise InputError(f"{limit.id} has no known bad value", "say where to end with --bad")
    upward = limit.shape is LimitShape.AT_MOST
    if (end <= limit.known_good) if upward else (end >= limit.known_good):
        side = "above" if upward else "below"
        raise InputError([Problem(f"must lie {side} {limit.known_good:g}", field="--bad", value=end)])
    knob = KNOB_OF[limit.quantity]
    context = planned.context
    base = _base_for(planned, knob)
    if not _speaks(limit, base, context):
        scope = ", ".join(f"{k}={v}" for k, v in limit.when.model_dump(exclude_none=True).items())
        raise InputError(
            f"{limit.id} does not speak for this plan ({scope})", "fix those settings with options of the plan"
        )
    others = [
        one
        for one in planned.subject.limits
        if one.id != limit.id
        and one.id not in planned.question.lift
        and holds_in_plan(one, planned.target.version.release)
        and not _same_quantity(one, limit)
    ]
    inside = (min(limit.known_good, end), max(limit.known_good, end))
    candidates, broken, chosen = _candidates(limit, knob, base, inside, others, context)
    if not candidates and broken:
        raise InputError(
            [
                Problem(f"every launch between {inside[0]:g} and {inside[1]:g} would break {id_}", field=limit.id,
                        hint=f'set it aside with --lift {id_}="why it is safe"')
                for id_ in sorted(broken)
            ]
        )  # fmt: skip
    trials: dict[float, Trial] = {}
    notes = [f"varied: {knob}"]
    if chosen.max_running_requests != base.max_running_requests:
        notes.append(
            f"{chosen.max_running_requests} running requests in every launch instead of {base.max_running_requests}: "
            "the other limits are kept"
        )
    for value, candidate in sorted(candidates.items()):
        try:
            trials[value] = planned.trial(candidate)
        except EngineRefusal as error:
            notes.append(f"{limit.quantity} {value:g}: the engine refuses it ({error.message})")
    if not trials:
        raise InputError(
            f"no launch realises a value of {limit.quantity} between {inside[0]:g} and {inside[1]:g}",
            "the interval is as narrow as the settings allow",
        )
    return ProbePlan(limit, limit.known_good, end, knob, chosen, trials, tuple(notes))


def _base_for(planned: Planned, knob: str) -> Candidate:
    base = planned.base
    if knob in ("budget", "topk") and base.speculation is not Speculation.TREE:
        raise InputError(f"the plan drafts no tree, so {knob} cannot be varied", "add --speculation tree")
    return base


def _same_quantity(one: Limit, other: Limit) -> bool:
    """Rows, and rows times heads, are one thing in two units while the layout stands."""
    rows = {"verify_rows_per_rank", "verify_rows_x_heads_per_rank"}
    return one.quantity == other.quantity or {one.quantity, other.quantity} <= rows


def _speaks(limit: Limit, candidate: Candidate, context: LimitContext) -> bool:
    return bool(evaluate_limit(limit, CandidateTable.of(candidate), context).applies.all())


def _value(limit: Limit, candidate: Candidate, context: LimitContext) -> float:
    assert limit.quantity is not None
    return float(quantity(limit.quantity, CandidateTable.of(candidate), context).max())


def _candidates(
    limit: Limit,
    knob: str,
    base: Candidate,
    inside: tuple[float, float],
    others: Iterable[Limit],
    context: LimitContext,
) -> tuple[dict[float, Candidate], set[str], Candidate]:
    """Value -> candidate for every realisable value, the limits that stand in the way, and the base that was varied."""
    others = list(others)
    requests = base.max_running_requests
    broken: set[str] = set()
    found: dict[float, Candidate] = {}
    chosen = base
    while requests >= 1:
        chosen = _with(base, "max_running_requests", requests)
        found, broken_here = {}, set()
        for setting in _settings(knob, chosen, inside[1]):
            candidate = _with(chosen, knob, setting)
            if candidate is None:
                continue
            value = _value(limit, candidate, context)
            if not inside[0] < value < inside[1]:
                continue
            against = [one.id for one in others if not _keeps(one, candidate, context)]
            broken_here.update(against)
            if not against:
                found[value] = candidate
        broken = broken or broken_here
        if not broken_here or knob == "max_running_requests":
            return found, broken, chosen
        requests = requests // 2
    return {}, broken, base


def _keeps(limit: Limit, candidate: Candidate, context: LimitContext) -> bool:
    return bool(evaluate_limit(limit, CandidateTable.of(candidate), context).safe.all())


def _settings(knob: str, base: Candidate, top: float) -> list[float]:
    """Values of a setting that are worth a launch."""
    if knob == "max_running_requests":
        ranks = base.attention_dp_size
        return [float(ranks * n) for n in range(1, int(top) + 1) if n <= 4096]
    if knob == "budget":
        return [float(n) for n in range(1, min(64, int(top)) + 1)]
    if knob in ("ep_size", "page_size"):
        return [float(2**n) for n in range(11)]
    if knob == "topk":
        return [float(n) for n in range(1, 17)]
    return [n / 100 for n in range(30, 99)]


def _with(base: Candidate, knob: str, setting: float) -> Candidate:
    """The candidate with one setting changed, and what follows from it."""
    if knob == "max_running_requests":
        running = max(1, int(setting) // base.attention_dp_size)
        share = base.cuda_graph_max_bs / max(1, base.max_running_requests // base.attention_dp_size)
        captured = max(1, round(running * share)) if base.cuda_graph else 0
        return base.replace(max_running_requests=int(setting), cuda_graph_max_bs=captured)
    if knob == "budget":
        return base.replace(budget=int(setting), q_len=int(setting) + 1)
    if knob == "mem_fraction_static":
        return base.replace(mem_fraction_static=setting)
    return base.replace(**{knob: int(setting)})
