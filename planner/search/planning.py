"""``make_plan`` and ``make_prediction``: a question in, a Plan or a Prediction out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.data import load_limits
from planner.domain import (
    Candidate,
    Launch,
    Plan,
    Speculation,
    Versions,
)
from planner.engine.dialects import get_dialect
from planner.engine.version import parse_engine_version
from planner.search.answer import Emit, Grounds, answer
from planner.search.choose import TIE_FRAC
from planner.search.models import load_models, points_for
from planner.search.request import Question, Subject, load_subject, served_length
from planner.search.score import TREE, Models
from planner.search.solve import CHUNKED_PREFILL_TOK, Request, Solved, Target, solve, solve_builds
from planner.search.ttft import first_token
from planner.version import __version__

__all__ = ["NEWEST_RELEASE", "TREE_DIALECT", "make_plan", "request_for", "target_of"]

TREE_DIALECT = "pr29907"
"""Build that a tree is planned for when none is named: the public proposal with a budget flag of its own."""

NEWEST_RELEASE = "0.5.23"


def make_plan(question: Question) -> Plan:
    """The best safe launch for a question.

    With neither engine version nor dialect named, the whole space is searched for the build that has trees and for the
    newest release, and the better plan is shown with the other beside it. The two differ in more than the tree: the
    release overlaps its scheduling with the GPU. Within a tie the tree is kept, the form of which there are runs on
    record. A choice that needs no tree is planned for the release, and so is a drafter whose trees every release runs
    (EAGLE, STANDALONE).

    Raises:
        InputError: bad input, every problem at once.
        MissingDataError: nothing to predict from.
    """
    subject = load_subject(question)
    models = load_models(subject.hardware, subject.model, subject.drafter, subject.workload, subject.calibration)
    if subject.dialect is not None or subject.version is not None:
        return _plan(question, subject, solve(request_for(question, subject, models, target_of(subject))), None)
    targets = [_release_target()]
    if subject.drafter is not None and subject.drafter.drafts_blocks:
        dialect = get_dialect(TREE_DIALECT)
        targets.append(Target(dialect, parse_engine_version(dialect.base_version)))
    found = solve_builds([request_for(question, subject, models, target) for target in targets])
    total = sum(one.n_candidates for one in found)
    best, *others = _ranked([replace(one, n_candidates=total) for one in found])
    other = next((one for one in others if _shown_beside(one, best)), None)
    return _plan(question, subject, best, other)


def _ranked(found: Sequence[Solved]) -> list[Solved]:
    """The builds' answers, the one to give first: the best rate, within a tie the tree; without any launch the release
    if it can have what was asked for."""
    feasible = [one for one in found if one.choice is not None]
    if not feasible:
        return list(found)
    best = max(map(_rate, feasible))
    tied = [one for one in feasible if _rate(one) >= best * (1.0 - TIE_FRAC)]
    first = next((one for one in tied if _draws_a_tree(one)), tied[0])
    return [first, *(one for one in feasible if one is not first)]


def _shown_beside(other: Solved, best: Solved) -> bool:
    """Whether the other build's answer is another one: the two differ in the tree, or in how they run it."""
    return other.choice is not None and (_draws_a_tree(other) or _draws_a_tree(best))


def _draws_a_tree(solved: Solved) -> bool:
    return solved.choice is not None and int(solved.table.speculation[solved.choice.row]) == TREE


def _rate(solved: Solved) -> float:
    """What was maximised, at the choice."""
    assert solved.choice is not None
    return float(solved.rank[solved.choice.row])


def target_of(subject: Subject) -> Target:
    """The build that was named; the newest release when none was."""
    dialect = subject.dialect or get_dialect(None)
    version = subject.version
    if version is None:
        version = _release_target().version if not dialect.has_tree else parse_engine_version(dialect.base_version)
    return Target(dialect, version)


def _release_target() -> Target:
    return Target(get_dialect(None), parse_engine_version(NEWEST_RELEASE))


def request_for(question: Question, subject: Subject, models: Models, target: Target) -> Request:
    """The search that a question asks of one build."""
    return Request(
        models=models,
        n_gpus=subject.n_gpus,
        target=target,
        limits=subject.limits,
        lifts=dict(question.lift),
        risk=question.risk,
        pins=question.pins,
        context_length_tok=served_length(subject.workload, subject.model),
        measured=subject.measured,
        robust_frac=question.robust,
    )


def _plan(question: Question, subject: Subject, solved: Solved, other: Solved | None) -> Plan:
    grounds = _grounds(subject, solved)
    return answer(
        solved,
        grounds,
        emit=_emitter(subject, solved.request.target),
        beside=(other, _emitter(subject, other.request.target)) if other is not None else None,
    )


def _emitter(subject: Subject, target: Target) -> Emit:
    from planner.engine.emit import emit_launches

    length = served_length(subject.workload, subject.model)

    def emit(candidate: Candidate) -> tuple[Launch, ...]:
        drafter = subject.drafter if candidate.speculation is not Speculation.OFF else None
        return emit_launches(
            candidate,
            hardware=subject.hardware,
            model=subject.model,
            drafter=drafter,
            context_length=length,
            engine_version=target.version,
            dialect=target.dialect.id,
            needs=subject.workload.needs,
            chunked_prefill_size=CHUNKED_PREFILL_TOK,
        )

    return emit


def _grounds(subject: Subject, solved: Solved) -> Grounds:
    workload, target = subject.workload, solved.request.target
    ceilings = []
    first = first_token(solved.scores, workload)
    judged = first.holds[solved.choice.row] if solved.choice is not None else first.holds.any()
    if workload.max_ttft_s is not None and not judged:
        ceilings.append(
            f"TTFT at most {workload.max_ttft_s * 1e3:g} ms: no model of TTFT under load holds here; measure it with "
            "`plan-config bench`"
        )
    assumptions = [
        "greedy decoding"
        if workload.temperature == 0
        else f"temperature {workload.temperature:g}: accept length falls",
        f"needs: {', '.join(sorted(need.value for need in workload.needs)) or 'no grammar, no logprobs'}",
        f"prefix hit {workload.prefix_hit_frac:.0%}",
    ]
    points = (
        points_for(subject.drafter, subject.model, workload, subject.calibration) if subject.drafter is not None else ()
    )
    if points and workload.domain.value == "unknown":
        kinds = ", ".join(sorted({point.domain for point in points}))
        chat = "" if kinds == "unknown" else "; chat would accept less, the interval reaches there"
        assumptions.append(f"traffic like the measured one ({kinds}){chat}")
    if points and any(point.bonus_counted is None for point in points):
        assumptions.append("accept length includes the bonus token (its source does not say)")
    if workload.mean_context_tok > 4096 and subject.drafter is not None:
        assumptions.append("verify attention above 4K context is not measured: the interval is wider")
    if solved.choice is not None and solved.candidate(solved.choice).kv_cache_dtype != "bf16":
        assumptions.append("FP8 KV cache: its effect on answers is not modelled")
    if subject.n_gpus != subject.hardware.n_gpus:
        assumptions.append(f"{subject.n_gpus} of {subject.hardware.n_gpus} GPUs")
    built_in = {limit.id: limit for limit in load_limits()}
    replaced = [limit.id for limit in subject.limits if built_in.get(limit.id, limit) != limit]
    if replaced:
        assumptions.append(f"built-in limits replaced by --limits: {', '.join(replaced)}")
    return Grounds(
        versions=Versions(
            planner=__version__,
            hardware=subject.hardware.id,
            model=subject.model.id,
            drafter=subject.drafter.id if subject.drafter is not None else None,
            dialect=target.dialect.id,
            engine_version=str(target.version),
            limits=tuple(limit.id for limit in subject.limits),
            calibration=(
                subject.calibration.name
                if subject.calibration is not None
                else next(iter(solved.scores.step.notes), None)
            ),
        ),
        engine_notes=_engine_notes(subject, solved),
        assumptions=tuple(assumptions),
        sources=tuple(
            dict.fromkeys([*(f"accept length: {point.source.ref}" for point in points), *solved.scores.step.notes])
        ),
        unknown_ceilings=tuple(ceilings),
        ttft=lambda solved, cell: first_token(solved.scores, workload).estimate(cell.row),
    )


def _engine_notes(subject: Subject, solved: Solved) -> tuple[str, ...]:
    target = solved.request.target
    notes = [*target.version.notes]
    if subject.dialect is None and subject.version is None and not target.dialect.has_tree:
        notes.append(f"SGLang {target.version}, the newest release with a flag table")
    drafted = solved.choice is not None and int(solved.table.speculation[solved.choice.row]) == 2
    if target.dialect.has_tree and (drafted or solved.choice is None):
        notes.append(f"{target.dialect.title} ({target.dialect.status})")
        notes.append(f"no SGLang release up to {NEWEST_RELEASE} accepts {target.dialect.algorithm}")
        if any(past.dialect != target.dialect.id for past in subject.measured):
            notes.append("not the build of the evidence: a canary run is required before traffic")
        notes.extend(f"assumed: {text}" for text in target.dialect.assumed)
    return tuple(notes)
