"""From a question or a plan to what an experiment runs: the pool of a sweep, and launches of chosen candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.domain import Candidate, Launch, Limit, Plan, Speculation
from planner.engine.emit import emit_launches
from planner.errors import InputError, Problem, nearest_hint
from planner.launch.target import Target as LaunchTarget
from planner.launch.target import read_plan_json, target_from_plan
from planner.learn.order import Pool
from planner.learn.pool import pool_of_search, trial_of
from planner.learn.running import Subject as RunSubject
from planner.learn.trial import Trial, knobs_of
from planner.limits import LimitContext
from planner.search.models import load_models
from planner.search.planning import make_plan, request_for, target_of
from planner.search.request import Question, Subject, WorkloadInput, load_subject, served_length
from planner.search.solve import CHUNKED_PREFILL_TOK, Solved, Target, solve

__all__ = ["Planned", "plan_base", "question_of_plan_file"]


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A plan with the parts that an experiment around it needs."""

    question: Question
    subject: Subject
    target: Target
    plan: Plan
    base: Candidate
    """The plan's choice."""

    def emit(self, candidate: Candidate) -> tuple[Launch, ...]:
        """What to run for a candidate.

        Raises:
            EngineRefusal: the engine would refuse it.
        """
        subject = self.subject
        return emit_launches(
            candidate,
            hardware=subject.hardware,
            model=subject.model,
            drafter=subject.drafter if candidate.speculation is not Speculation.OFF else None,
            context_length=served_length(subject.workload, subject.model),
            engine_version=self.target.version,
            dialect=self.target.dialect.id,
            needs=subject.workload.needs,
            chunked_prefill_size=CHUNKED_PREFILL_TOK,
        )

    def trial(self, candidate: Candidate) -> Trial:
        """A candidate as a trial."""
        return trial_of(candidate, self.emit(candidate)[0])

    def pool(self, *, most: int, keep_frac: float) -> tuple[Pool, Trial]:
        """The trials of a sweep, and the one to begin with: the plan, or what is nearest to it.

        Raises:
            InputError: the space holds no safe candidate with one server.
        """
        solved = self._solved()
        pool = pool_of_search(solved, self.emit, most=most, keep_frac=keep_frac)
        knobs = knobs_of(self.base)
        return pool, min(pool.trials, key=lambda trial: sum(value != knobs.get(name) for name, value in trial.knobs))

    def _solved(self) -> Solved:
        subject = self.subject
        models = load_models(subject.hardware, subject.model, subject.drafter, subject.workload, subject.calibration)
        return solve(request_for(self.question, subject, models, self.target))

    @property
    def context(self) -> LimitContext:
        """What limits may look at."""
        drafter = self.subject.drafter
        return LimitContext(
            self.subject.hardware,
            self.subject.model,
            self.subject.workload,
            block_size=drafter.block_size if drafter is not None else None,
        )

    def limit(self, id_: str) -> Limit:
        """A limit of the question by id.

        Raises:
            InputError: there is none.
        """
        known = {limit.id: limit for limit in self.subject.limits}
        if id_ not in known:
            raise InputError(
                [Problem(f"unknown limit {id_!r}", field="LIMIT_ID", value=id_, hint=nearest_hint(id_, sorted(known)))]
            )
        return known[id_]

    def run_subject(self) -> RunSubject:
        """What the launches are of."""
        subject = self.subject
        return RunSubject(
            hardware=subject.hardware.id,
            model=subject.model.id,
            drafter=subject.drafter.id if subject.drafter is not None else None,
            versions=self.plan.versions,
            workload=subject.workload,
            allowed=tuple(self.question.lift),
        )


def plan_base(question: Question, base: Candidate | None = None) -> Planned:
    """Plan, and keep the parts.

    Args:
        question: what is asked.
        base: the choice of a plan that was made before, for the same question.

    Raises:
        InputError: bad input, or nothing in the space is safe.
        MissingDataError: nothing to predict from.
    """
    plan = make_plan(question)
    if plan.effective is None or plan.launch is None:
        text = plan.conflict.text if plan.conflict is not None else "no launch meets the limits and requests"
        hints = "; ".join(plan.conflict.relaxations) if plan.conflict is not None else ""
        raise InputError(f"the space holds no safe candidate: {text}", hints or "relax a request, then plan again")
    built = replace(
        question, dialect=plan.versions.dialect, engine_version=plan.versions.engine_version or question.engine_version
    )
    subject = load_subject(built)
    return Planned(built, subject, target_of(subject), plan, base or plan.effective)


def question_of_plan_file(path: Path) -> tuple[Question, LaunchTarget]:
    """The question that a plan file answers, and its launch.

    Raises:
        InputError: it cannot be read, is no plan, is infeasible, or does not say what it is for.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InputError([Problem(reason or str(error), file=str(path), hint="give the JSON of a plan")]) from None
    data = read_plan_json(text, name=str(path))
    target = target_from_plan(data, name=str(path))
    versions, workload = target.versions, target.workload
    if versions is None or workload is None or target.expected is None:
        missing = [name for name in ("versions", "workload", "effective") if not data.get(name)]
        hint = "write it with `plan-config ... --format json`"
        raise InputError([Problem(f"no {name}", file=str(path), field=name, hint=hint) for name in missing])
    asked = WorkloadInput(
        target_c=workload.target_c,
        context=workload.context_tok,
        output_len=workload.output_tok,
        prefix_hit=workload.prefix_hit_frac,
        temperature=workload.temperature,
        domain=workload.domain.value,
        needs=tuple(need.value for need in workload.needs),
        max_ttft_ms=_milliseconds(workload.max_ttft_s),
        max_tpot_ms=_milliseconds(workload.max_tpot_s),
        min_tok_per_user=workload.min_tok_per_s_per_user,
        allow_queue=workload.allow_queue,
    )
    question = Question(
        hw=versions.hardware,
        workload=asked,
        model=versions.model,
        drafter=versions.drafter or "none",
        engine_version=versions.engine_version,
        dialect=versions.dialect,
        risk=str(data.get("risk", "safe")),
        lift=_lifts(data),
    )
    return question, target


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _lifts(data: Mapping[str, Any]) -> dict[str, str]:
    found = (lift for lift in data.get("lifted") or () if isinstance(lift, dict))
    return {str(lift.get("id")): str(lift.get("reason") or "as in the plan") for lift in found}
