"""The answer: a Plan (what to launch and why) and a Prediction (what a given launch would do)."""

# Annotations are evaluated here, not kept as text: pydantic would compile each of them when the module is imported.

from enum import StrEnum
from typing import Literal

from planner.domain.base import Estimate, Value
from planner.domain.launch import Candidate
from planner.domain.limit import Consequence, LimitStatus
from planner.domain.workload import Workload

__all__ = [
    "BindingLimit",
    "Comparison",
    "Conflict",
    "Launch",
    "Lift",
    "Plan",
    "PlanStatus",
    "Predicted",
    "Prediction",
    "Refused",
    "StepPart",
    "Versions",
]


class PlanStatus(StrEnum):
    """How far the answer can be trusted to be the best one."""

    OPTIMAL = "optimal"
    """Nothing in the space is better; all ceilings asked for are met by the model."""
    FEASIBLE = "feasible"
    """Allowed, but not proved best: part of the space was not scored."""
    INFEASIBLE = "infeasible"
    """Nothing in the space meets limits and requests; see ``conflict``."""
    UNKNOWN = "unknown"
    """A ceiling was asked for which there is no model: it is not assumed to be met."""


class Launch(Value):
    """What to run: argv as a list (never a shell string) and the environment it needs."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


class StepPart(Value):
    """One part of a step."""

    name: str
    step_s: float
    provenance: str


class Predicted(Value):
    """What the models say about a candidate under the workload."""

    tok_per_s: Estimate
    """Steady-state output tokens per second of the box."""
    tok_per_s_per_user: Estimate
    accept_len: Estimate
    """Tokens committed per verify step, bonus token included; exactly 1 with speculation off."""
    step_s: Estimate
    """One verify (or decode) step, draft included."""
    break_even_accept_len: Estimate | None = None
    """Accept length below which speculation off is faster; None when speculation is off or off cannot run."""
    tpot_s: Estimate
    ttft_s: Estimate | None = None
    n_running: float
    """Requests that run at a time (C_eff)."""
    wait_s: float = 0.0
    """Mean time a request waits before it runs (closed loop, only with queueing)."""
    kv_capacity_tok: float
    """Tokens that the KV pool of one attention-DP rank holds."""
    kv_needed_tok: float
    memory_bytes: tuple[tuple[str, float], ...]
    """Device memory of one rank by part."""
    step_parts: tuple[StepPart, ...]


class BindingLimit(Value):
    """A limit as it stands for the choice."""

    id: str
    title: str
    plan: float | None
    known_good: float | None
    known_bad: float | None
    margin_frac: float | None
    """(known_good - plan) / known_good; 0 when the plan stands on the limit."""
    cost_tok_per_s: float = 0.0
    """What the best plan without this limit would gain over the best plan with it."""
    cost_low_tok_per_s: float = 0.0
    """5 % quantile of that gain; below zero where it might lose."""
    cost_high_tok_per_s: float = 0.0
    """95 % quantile of that gain."""
    status: LimitStatus
    consequence: Consequence
    lifted: str | None = None
    """Reason given when the limit was lifted."""
    refs: tuple[str, ...] = ()


class Comparison(Value):
    """Another candidate beside the choice."""

    label: str
    candidate: Candidate
    predicted: Predicted
    p_choice_better: float | None = None
    """Probability that the choice has the higher tok/s."""
    launches: tuple[Launch, ...] = ()
    """What to run, where it is offered as a launch of its own."""
    note: str | None = None


class Refused(Value):
    """Something attractive that is not offered, and why."""

    what: str
    by: str
    """Id of the limit or rule."""
    why: str
    tok_per_s: float | None = None
    refs: tuple[str, ...] = ()


class Lift(Value):
    """A limit set aside by the user, with the reason."""

    id: str
    reason: str


class Conflict(Value):
    """A smallest set of limits and requests that cannot hold together, and what would let go."""

    ids: tuple[str, ...]
    text: str
    relaxations: tuple[str, ...] = ()


class Versions(Value):
    """Everything that the same answer can be reproduced from."""

    planner: str
    hardware: str
    model: str
    drafter: str | None
    dialect: str
    engine_version: str | None
    limits: tuple[str, ...]
    calibration: str | None = None


class Plan(Value):
    """A safe launch and its grounds. Infeasible is a Plan too."""

    schema_version: Literal[1] = 1
    status: PlanStatus
    status_note: str | None = None
    workload: Workload
    risk: str
    launch: Launch | None
    launches: tuple[Launch, ...] = ()
    """One per replica (the first is ``launch``)."""
    effective: Candidate | None
    predicted: Predicted | None
    off: Comparison | None = None
    other_build: Comparison | None = None
    """Best plan for the other build: the newest release where the choice needs one that is not released, the build
    with trees where the release is better."""
    binding: tuple[BindingLimit, ...] = ()
    ties: tuple[Comparison, ...] = ()
    runners_up: tuple[Comparison, ...] = ()
    refused: tuple[Refused, ...] = ()
    lifted: tuple[Lift, ...] = ()
    conflict: Conflict | None = None
    skipped: tuple[str, ...] = ()
    """Limits, rules or ceilings that could not be judged, with the reason."""
    assumptions: tuple[str, ...] = ()
    next_measurement: str | None = None
    safe_because: str | None = None
    engine_notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    versions: Versions
    n_candidates: int
    """Candidates scored."""


class Prediction(Value):
    """What a given launch would do: no choice, only figures, with every limit it breaks."""

    effective: Candidate
    predicted: Predicted
    constant_step: Estimate | None = None
    """tok/s under the assumption that a step costs the same at any q_len (see docs), for comparison."""
    broken: tuple[BindingLimit, ...] = ()
    assumptions: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
