"""Observations to proposals: new limits with interval, scope and evidence; limits that moved, or that a version mended.

A proposal is a suggestion for a person: it is written as TOML beside the observations that led to it, never applied.

How a limit is found. Failures of one kind (a cuBLAS failure is not an illegal address) on one machine are looked at
together. A quantity explains them when every good run lies below every failing one that it explains; the quantity that
the diagnosis points to is asked first, and what it leaves unexplained is asked of the next. A quantity that a run does
not state explains nothing in that run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.domain import (
    Candidate,
    Consequence,
    Evidence,
    HardwareProfile,
    Limit,
    LimitScope,
    LimitShape,
    LimitStatus,
    ModelProfile,
)
from planner.learn.trial import FLAKY_CAUSES

__all__ = ["Contradiction", "Proposals", "Run", "propose_limits"]

Quantity = Callable[[Candidate], float]

FIELDS_BEHIND: Mapping[str, tuple[str, ...]] = {
    "verify_rows_per_rank": ("max_running_requests", "budget", "cuda_graph", "attention_dp_size"),
    "q_len": ("budget",),
    "ep_size": ("ep_size",),
    "max_running_requests": ("max_running_requests",),
    "tp_size": ("tp_size",),
}
"""Fields of a candidate that a quantity is computed from: a run that does not state them says nothing about it."""

QUANTITIES: Mapping[str, Quantity] = {
    "verify_rows_per_rank": lambda candidate: float(candidate.verify_rows_per_rank),
    "q_len": lambda candidate: float(candidate.q_len),
    "ep_size": lambda candidate: float(candidate.ep_size),
    "max_running_requests": lambda candidate: float(candidate.max_running_requests),
    "tp_size": lambda candidate: float(candidate.tp_size),
}

SCOPE_OF: Mapping[str, tuple[str, ...]] = {
    "verify_rows_per_rank": ("heads_per_rank",),
    "q_len": ("cuda_graph", "attention_backend"),
    "ep_size": ("cuda_graph",),
    "max_running_requests": ("cuda_graph",),
    "tp_size": (),
}
"""Dimensions beside machine and attention kind on which a quantity's fault may depend: rows on the heads of a rank (the
batched GEMM of the absorbed attention), q_len on graphs and the kernel that is captured."""

POINTS_TO: Mapping[str, tuple[str, ...]] = {
    "cublas-exec-failed": ("verify_rows_per_rank", "ep_size", "max_running_requests"),
    "cuda-illegal-address-capture": ("q_len", "verify_rows_per_rank", "max_running_requests"),
    "cuda-illegal-address-spec": ("q_len", "verify_rows_per_rank"),
    "cuda-illegal-address-spec-replay": ("q_len", "verify_rows_per_rank"),
    "garbage-output": ("q_len", "verify_rows_per_rank"),
    "accept-len-1": ("q_len",),
    "oom-capture": ("max_running_requests", "verify_rows_per_rank"),
    "oom-startup": ("max_running_requests",),
}
"""Quantities that a cause suggests, most likely first (docs/diagnose.md)."""

SAME_FAULT = (
    frozenset({"cuda-illegal-address-capture", "cuda-illegal-address-spec", "cuda-illegal-address-spec-replay",
               "garbage-output", "accept-len-1"}),
)  # fmt: skip
"""Causes that are one fault seen at different moments: a stale graph crashes, or answers garbage."""

_CONSEQUENCE = {
    "garbage-output": Consequence.WRONG_OUTPUT,
    "accept-len-1": Consequence.WRONG_OUTPUT,
    "oom-capture": Consequence.OOM,
    "oom-startup": Consequence.OOM,
}
_WORST = (Consequence.WRONG_OUTPUT, Consequence.CRASH, Consequence.OOM, Consequence.HANG)


@dataclass(frozen=True, slots=True)
class Run:
    """One observation as the search for limits sees it."""

    ref: str
    """``observation obs-...`` or ``field note FN-04``."""
    candidate: Candidate
    cause: str
    """``ok`` or the slug of a diagnosis."""
    outcome: str
    engine: str
    unstated: frozenset[str] = frozenset()
    """Fields of the candidate that were not recorded."""
    version: str | None = None
    """Release of the engine, where it is one."""

    @property
    def ok(self) -> bool:
        return self.cause == "ok"

    def value(self, quantity: str) -> float | None:
        """The quantity, or None where the run does not state it."""
        if self.unstated & set(FIELDS_BEHIND[quantity]):
            return None
        return QUANTITIES[quantity](self.candidate)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The same launch on the same engine that ran well and failed: shown side by side, never averaged."""

    good: Run
    bad: Run


@dataclass(frozen=True, slots=True)
class Proposals:
    """What the runs teach."""

    limits: tuple[Limit, ...]
    explained: Mapping[str, tuple[str, ...]]
    """Limit id -> runs that it explains."""
    unexplained: tuple[Run, ...]
    exonerated: tuple[str, ...]
    """Settings that failing runs shared with others that fail the same way without them."""
    contradictions: tuple[Contradiction, ...]
    flaky: tuple[str, ...] = ()
    """Failures without a known cause of launches that ran well another time: no limit, and no contradiction."""


def propose_limits(runs: Sequence[Run], *, hardware: HardwareProfile, model: ModelProfile) -> Proposals:
    """Limits that separate the good runs from the failing ones, on one machine and model."""
    contradictions = tuple(
        Contradiction(good, bad)
        for good in runs
        for bad in runs
        if good.ok and not bad.ok and good.candidate == bad.candidate and good.engine == bad.engine
    )
    flaky = tuple(dict.fromkeys(pair.bad.ref for pair in contradictions if pair.bad.cause in FLAKY_CAUSES))
    contradictions = tuple(pair for pair in contradictions if pair.bad.ref not in flaky)
    contested = {run.ref for pair in contradictions for run in (pair.good, pair.bad)} | set(flaky)
    good = [run for run in runs if run.ok and run.ref not in contested]
    limits: list[Limit] = []
    explained: dict[str, tuple[str, ...]] = {}
    unexplained: list[Run] = []
    for causes in _groups([run.cause for run in runs if not run.ok]):
        left = [run for run in runs if run.cause in causes and run.ref not in contested]
        for quantity in dict.fromkeys(name for cause in sorted(causes) for name in POINTS_TO.get(cause, ())):
            while left:
                found = _separate(quantity, good, left, hardware, model)
                if found is None:
                    break
                limit, mine = found
                limits.append(limit)
                explained[limit.id] = tuple(run.ref for run in mine)
                left = [run for run in left if run not in mine]
        unexplained += left
    return Proposals(
        limits=tuple(limits),
        explained=explained,
        unexplained=tuple(unexplained),
        exonerated=tuple(_exonerated([run for run in runs if not run.ok])),
        contradictions=contradictions,
        flaky=flaky,
    )


def _groups(causes: Iterable[str]) -> list[frozenset[str]]:
    """Causes that are looked at together."""
    groups: list[frozenset[str]] = []
    for cause in dict.fromkeys(causes):
        group = next((same for same in SAME_FAULT if cause in same), frozenset({cause}))
        if group not in groups:
            groups.append(group)
    return groups


def _scope_of(quantity: str, bad: Sequence[Run], hardware: HardwareProfile, model: ModelProfile) -> LimitScope:
    """Machine, attention kind, and of the quantity's own dimensions those in which all failing runs agree."""
    found: dict[str, object] = {}
    for name in SCOPE_OF[quantity]:
        values = {_dimension(run, name, model) for run in bad}
        if len(values) == 1:
            found[name] = values.pop()
    return LimitScope(sm=hardware.sm, attention_kind=model.attention_kind.value, engine="sglang", **found)


def _dimension(run: Run, name: str, model: ModelProfile) -> object:
    if name == "heads_per_rank":
        return model.n_heads * run.candidate.attention_dp_size // run.candidate.tp_size
    return getattr(run.candidate, name)


def _separate(
    quantity: str, good: Sequence[Run], bad: Sequence[Run], hardware: HardwareProfile, model: ModelProfile
) -> tuple[Limit, list[Run]] | None:
    """A limit on one quantity that explains some of the failing runs, and which."""
    stated = [run for run in bad if run.value(quantity) is not None]
    if not stated:
        return None
    scope = _scope_of(quantity, stated, hardware, model)
    inside = [
        run
        for run in good
        if run.value(quantity) is not None
        and all(getattr(scope, name) in (None, _dimension(run, name, model)) for name in SCOPE_OF[quantity])
    ]
    if not inside:
        return None
    most = max(float(run.value(quantity) or 0.0) for run in inside)
    mine = [run for run in stated if float(run.value(quantity) or 0.0) > most]
    return (_limit(quantity, scope, most, inside, mine, hardware, model), mine) if mine else None


def _limit(
    quantity: str,
    scope: LimitScope,
    known_good: float,
    good: Sequence[Run],
    mine: Sequence[Run],
    hardware: HardwareProfile,
    model: ModelProfile,
) -> Limit:
    known_bad = min(float(run.value(quantity) or 0.0) for run in mine)
    best = max(good, key=lambda run: float(run.value(quantity) or 0.0))
    rivals = [
        other
        for other in QUANTITIES
        if other != quantity and all(_could_explain(other, run, good) for run in mine) and other in FIELDS_BEHIND
    ]
    confounded = [run.ref for run in mine if run.unstated & {"max_running_requests", "budget"}]
    sure = len(mine) > 1 and not confounded
    consequences = {_CONSEQUENCE.get(run.cause, Consequence.CRASH) for run in mine}
    graphs = {True: "with graphs", False: "without graphs", None: ""}[scope.cuda_graph]
    notes = []
    if confounded:
        notes.append(f"confounded: {', '.join(confounded)} do not state every setting")
    if rivals:
        notes.append(f"also separated by {', '.join(sorted(rivals))}")
    return Limit(
        id=f"{hardware.id.upper().replace('_', '-')}-{model.attention_kind.value.upper()}-"
        f"{quantity.upper().replace('_', '-')}{'-GRAPHS' if scope.cuda_graph else ''}",
        title=f"{quantity.replace('_', ' ')} {graphs} ({hardware.sm_name})".replace("  ", " "),
        shape=LimitShape.AT_MOST,
        quantity=quantity,
        known_good=known_good,
        known_bad=known_bad,
        when=scope,
        status=LimitStatus.ESTABLISHED if sure else LimitStatus.SUSPECTED,
        consequence=next(item for item in _WORST if item in consequences),
        seen_on=", ".join(dict.fromkeys(run.engine for run in mine)),
        confidence_note="; ".join(notes) or None,
        evidence=(
            Evidence(ref=best.ref, outcome=best.outcome, value=best.value(quantity)),
            *(Evidence(ref=run.ref, outcome=run.outcome, value=run.value(quantity)) for run in mine),
        ),
    )


def _could_explain(quantity: str, run: Run, good: Sequence[Run]) -> bool:
    """Whether another quantity separates this run from the same good ones, or is not stated in it."""
    value = run.value(quantity)
    known = [other for one in good if (other := one.value(quantity)) is not None]
    return value is None or (bool(known) and value > max(known))


def _exonerated(bad: Sequence[Run]) -> Iterable[str]:
    """Switches that are on in some failing run and off in another that fails the same way and is otherwise equal."""
    for name in ("allreduce_fusion", "enable_nccl_nvls"):
        with_it = [run for run in bad if getattr(run.candidate, name)]
        for run in with_it:
            other = next(
                (
                    one
                    for one in bad
                    if one.cause == run.cause
                    and not getattr(one.candidate, name)
                    and one.candidate == run.candidate.replace(**{name: False})
                ),
                None,
            )
            if other is not None:
                yield f"{name}: {run.ref} fails with it, {other.ref} the same way without it"
                break
