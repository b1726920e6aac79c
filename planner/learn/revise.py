"""Limits that are known already, in the light of new runs: intervals that moved, faults that a version mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from planner.domain import Evidence, HardwareProfile, Limit, LimitShape, LimitStatus, ModelProfile
from planner.learn.propose import POINTS_TO, QUANTITIES, Run

__all__ = ["Revised", "Revision", "revise_limits"]

MENDED_RUNS = 2
"""Good runs beyond the known bad value that it takes to call a fault mended."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A limit before and after, and why."""

    before: Limit
    after: Limit
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Revised:
    """What new runs say of known limits."""

    revisions: tuple[Revision, ...]
    confirmed: tuple[tuple[str, tuple[str, ...]], ...]
    """Limit id and the failing runs that it foretells."""
    disputed: tuple[str, ...]
    """Runs against a limit, and against each other: shown, nothing is changed for them."""
    unexplained: tuple[Run, ...]
    """Failing runs that no known limit foretells."""


def revise_limits(
    limits: Sequence[Limit], runs: Sequence[Run], *, hardware: HardwareProfile, model: ModelProfile
) -> Revised:
    """Compare upper limits on the quantities of a launch with runs of one machine and model."""
    revisions: list[Revision] = []
    confirmed: dict[str, list[str]] = {}
    disputed: list[str] = []
    foretold: set[str] = set()
    for limit in limits:
        if not _speaks(limit, hardware, model) or limit.status is LimitStatus.RETIRED:
            continue
        assert limit.quantity is not None
        assert limit.known_good is not None
        placed = [
            (run, value)
            for run in runs
            if _in_scope(limit, run, model) and (value := run.value(limit.quantity)) is not None
        ]
        good = [(run, value) for run, value in placed if run.ok]
        bad = [(run, value) for run, value in placed if not run.ok and limit.quantity in POINTS_TO.get(run.cause, ())]
        for run, value in bad:
            if value > limit.known_good:
                foretold.add(run.ref)
                confirmed.setdefault(limit.id, []).append(run.ref)
            elif _first(run) == limit.quantity:
                foretold.add(run.ref)
                disputed.append(
                    f"{limit.id}: {run.ref} fails ({run.cause}) at {value:g}, the limit says good up to "
                    f"{limit.known_good:g}"
                )
        revision = _moved(limit, good, bad, disputed)
        if revision is not None:
            revisions.append(revision)
    return Revised(
        revisions=tuple(revisions),
        confirmed=tuple((id_, tuple(refs)) for id_, refs in confirmed.items()),
        disputed=tuple(disputed),
        unexplained=tuple(run for run in runs if not run.ok and run.ref not in foretold),
    )


def _first(run: Run) -> str:
    return POINTS_TO[run.cause][0]


def _speaks(limit: Limit, hardware: HardwareProfile, model: ModelProfile) -> bool:
    when = limit.when
    return (
        limit.shape is LimitShape.AT_MOST
        and limit.quantity in QUANTITIES
        and when.sm in (None, hardware.sm)
        and when.attention_kind in (None, model.attention_kind.value)
        and when.model in (None, model.id)
        and when.engine in (None, "sglang")
    )


def _in_scope(limit: Limit, run: Run, model: ModelProfile) -> bool:
    when, candidate = limit.when, run.candidate
    heads = model.n_heads * candidate.attention_dp_size // candidate.tp_size
    return (
        when.heads_per_rank in (None, heads)
        and when.attention_backend in (None, candidate.attention_backend)
        and when.cuda_graph in (None, candidate.cuda_graph)
        and when.speculation in (None, candidate.speculation.value)
    )


def _moved(
    limit: Limit, good: Sequence[tuple[Run, float]], bad: Sequence[tuple[Run, float]], disputed: list[str]
) -> Revision | None:
    assert limit.known_good is not None
    before_bad = limit.known_bad
    beyond = [(run, value) for run, value in good if before_bad is not None and value >= before_bad]
    inside = [(run, value) for run, value in good if value > limit.known_good and (run, value) not in beyond]
    lower = [
        (run, value)
        for run, value in bad
        if _first(run) == limit.quantity and value > limit.known_good and (before_bad is None or value < before_bad)
    ]
    mended = _mended(limit, beyond, bad)
    if mended is not None:
        return mended
    for run, value in beyond:
        disputed.append(f"{limit.id}: {run.ref} ran well at {value:g}, the limit says bad from {before_bad:g}")
    known_good = max((value for _, value in inside), default=limit.known_good)
    known_bad = min((value for _, value in lower), default=before_bad)
    if known_bad is not None and known_good >= known_bad:
        best, worst = max(inside, key=lambda pair: pair[1]), min(lower, key=lambda pair: pair[1])
        disputed.append(
            f"{limit.id}: {best[0].ref} ran well at {best[1]:g}, {worst[0].ref} fails ({worst[0].cause}) at "
            f"{worst[1]:g}: the two do not fit one threshold"
        )
        return None
    if (known_good, known_bad) == (limit.known_good, before_bad):
        return None
    why, news = [], []
    if known_good != limit.known_good:
        why.append(f"known good {limit.known_good:g} -> {known_good:g}")
        news.append(max(inside, key=lambda pair: pair[1]))
    if known_bad != before_bad:
        why.append(f"known bad {'-' if before_bad is None else f'{before_bad:g}'} -> {known_bad:g}")
        news.append(min(lower, key=lambda pair: pair[1]))
    after = limit.replace(
        known_good=known_good, known_bad=known_bad, evidence=(*limit.evidence, *(_evidence(*pair) for pair in news))
    )
    return Revision(limit, after, tuple(why))


def _mended(limit: Limit, beyond: Sequence[tuple[Run, float]], bad: Sequence[tuple[Run, float]]) -> Revision | None:
    """A limit that a newer version no longer has: good runs beyond it, no such failure there or later."""
    versions = sorted({version for run, _ in beyond if (version := _release(run)) is not None})
    for version in versions:
        after = [(run, value) for run, value in beyond if (_release(run) or Version("0")) >= version]
        failing = [run for run, value in bad if value > (limit.known_good or 0) and _not_before(run, version)]
        if len(after) < MENDED_RUNS or failing or f" {version}" in limit.seen_on or limit.fixed_in is not None:
            continue
        changed = limit.replace(
            status=LimitStatus.FIXED_IN,
            fixed_in=str(version),
            evidence=(*limit.evidence, *(_evidence(*pair) for pair in after)),
        )
        refs = ", ".join(run.ref for run, _ in after)
        return Revision(limit, changed, (f"fixed in {version}: {refs} ran well beyond the known bad value",))
    return None


def _release(run: Run) -> Version | None:
    try:
        return Version(run.version or "")
    except InvalidVersion:
        return None


def _not_before(run: Run, version: Version) -> bool:
    """Whether a run is of this version or later; one of an unknown version may be."""
    release = _release(run)
    return release is None or release >= version


def _evidence(run: Run, value: float) -> Evidence:
    return Evidence(ref=run.ref, outcome=run.outcome, value=value)
