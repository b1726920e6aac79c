"""``make_prediction``: a launch in, figures out. Nothing is chosen, every broken limit is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.data.field_notes import FieldRun, field_runs
from planner.data.hf_config import read_hf_config
from planner.domain import (
    BindingLimit,
    Candidate,
    DrafterProfile,
    Estimate,
    Launch,
    LaunchConfig,
    Prediction,
    Provenance,
    Speculation,
)
from planner.domain.table import CandidateTable
from planner.engine.argv import read_argv, split_program
from planner.engine.dialects import DIALECTS
from planner.engine.resolution import resolve
from planner.engine.version import parse_engine_version
from planner.errors import InputError, Problem
from planner.limits import LimitContext, evaluate_limit, holds_in_plan
from planner.search.cell import Cell
from planner.search.effective import candidate_of
from planner.search.explain import binding_of
from planner.search.masks import Constraints, memory_columns
from planner.search.models import load_models
from planner.search.planning import request_for, target_of
from planner.search.request import Question, Subject, load_subject, served_length
from planner.search.sampled import Finalists
from planner.search.score import AcceptanceCurve, AcceptColumns, Floats, score
from planner.search.solve import CHUNKED_PREFILL_TOK, Solved, Target
from planner.search.ttft import first_token

__all__ = ["make_prediction", "predict_candidate"]

TREE_ALGORITHM = "DDTREE"
"""Algorithm of trees in the builds that have one of their own name; no release knows it."""


def make_prediction(
    question: Question, launch: Sequence[str] | Launch | LaunchConfig, *, accept_len: float | None = None
) -> Prediction:
    """What ``launch`` would do under the question's workload.

    Raises:
        InputError: bad input, every problem at once.
        EngineRefusal: the engine would refuse the launch.
        MissingDataError: nothing to predict from.
    """
    subject = load_subject(question)
    words = None if isinstance(launch, LaunchConfig) else _words(launch)
    target, assumed = _build_of(subject, launch if isinstance(launch, LaunchConfig) else words or ())
    if isinstance(launch, LaunchConfig):
        config = launch
    else:
        read = read_argv(words or (), version=target.version, dialect=target.dialect.id)
        if read.problems:
            raise InputError(
                Problem(problem.message, field=problem.token, value=problem.token, hint=problem.hint)
                for problem in read.problems
            )
        config = read.launch
    faults = _arithmetic(config, subject)
    if faults:
        raise InputError(faults)
    drafter = subject.drafter
    resolution = resolve(
        config,
        hardware=subject.hardware,
        model=subject.model,
        drafter=drafter,
        engine_version=target.version,
        dialect=target.dialect.id,
        model_config=_config(config.model_path),
        draft_config=_config(config.speculative_draft_model_path),
    )
    if resolution.error is not None:
        raise resolution.error
    candidate = candidate_of(resolution, dialect=target.dialect, drafter=drafter)
    used = candidate.tp_size * candidate.replicas
    if used > subject.n_gpus:
        message = f"the launch takes {used} GPUs, {subject.n_gpus} are there"
        raise InputError([Problem(message, field="--tp-size", value=used, hint="a smaller --tp-size, or another --hw")])
    most = candidate.q_len if drafter is None else min(candidate.q_len, drafter.block_size)
    if accept_len is not None and candidate.budget and accept_len > most:
        message = f"must be at most {most} (got {accept_len:g})"
        hint = "a step commits at most a path of the draft and the bonus token"
        raise InputError([Problem(message, field="--accept-len", value=accept_len, hint=hint)])
    effective = resolution.effective
    told = config.disable_overlap_schedule or target.version.exact
    prediction = predict_candidate(
        subject,
        question,
        target,
        candidate,
        accept_len=accept_len,
        without_overlap=bool(told and effective.get("disable_overlap_schedule")),
        draft_steps=int(effective.get("speculative_num_steps") or 0),
    )
    notes = (*assumed, *_other_model(config, subject), *_too_many_steps(candidate, subject.drafter, effective))
    if used < subject.n_gpus and subject.workload.target_c > 1:
        notes += (
            f"one server on {used} of {subject.n_gpus} GPUs takes all {subject.workload.target_c} clients "
            "(of several servers give each its share as --target-c)",
        )
    return prediction.model_copy(update={"assumptions": (*notes, *prediction.assumptions)})


def _too_many_steps(
    candidate: Candidate, drafter: DrafterProfile | None, effective: Mapping[str, Any]
) -> tuple[str, ...]:
    """A sentence where a server would die at its first decode (SPC027)."""
    steps = int(effective.get("speculative_num_steps") or 0)
    if drafter is None or drafter.drafts_blocks or candidate.budget == 0 or steps <= candidate.budget:
        return ()
    return (
        f"{steps} draft steps for {candidate.budget} drafted tokens: 0.5.15.post1 dies at its first decode (SPC027); "
        "the figures are those of a server that does not",
    )


def _words(launch: Sequence[str] | Launch) -> tuple[str, ...]:
    """The arguments without the program. A command line in one string is read as a shell would split it."""
    import shlex

    if isinstance(launch, Launch):
        launch = launch.argv
    if isinstance(launch, str):
        try:
            launch = shlex.split(launch)
        except ValueError as error:
            raise InputError([Problem(f"cannot be split into words: {error}", field="launch")]) from None
    if not isinstance(launch, Sequence) or not all(isinstance(word, str | int | float) for word in launch):
        message = f"must be a list of words or a LaunchConfig (got {type(launch).__name__})"
        raise InputError([Problem(message, field="launch", hint="plan.launch.argv is one")])
    return split_program(tuple(str(word) for word in launch))[1]


def _build_of(subject: Subject, launch: Sequence[str] | LaunchConfig) -> tuple[Target, tuple[str, ...]]:
    """The build that was named; with none named, a tree launch is read in the dialect whose flags it uses.

    No release accepts a tree, so the newest release would refuse every argv that a plan with a tree emits.
    """
    if subject.dialect is not None or subject.version is not None:
        return target_of(subject), ()
    if isinstance(launch, LaunchConfig):
        given = set(launch.given())
        own = {one.id: {flag.dest for flag in one.flags} for one in DIALECTS.values()}
        tree = launch.speculative_algorithm == TREE_ALGORITHM
    else:
        given = {word.partition("=")[0] for word in launch if word.startswith("--")}
        own = {one.id: {flag.name for flag in one.flags} for one in DIALECTS.values()}
        tree = TREE_ALGORITHM in {word.rpartition("=")[2] for word in launch}
    named = next((name for name, flags in own.items() if given & flags), "field" if tree else None)
    if named is None:
        return target_of(subject), ()
    dialect = DIALECTS[named]
    note = f"no build named: read as {dialect.id} on {dialect.base_version}, whose tree flags the launch uses"
    return Target(dialect, parse_engine_version(dialect.base_version)), (note,)


def _other_model(config: LaunchConfig, subject: Subject) -> tuple[str, ...]:
    """A sentence where the launch names a model that is not the profile's."""
    path, model = config.model_path, subject.model
    names = {name.lower().rsplit("/", 1)[-1] for name in (model.model_path, model.id, model.name, *model.aliases)}
    if path is None or path.rstrip("/").lower().rsplit("/", 1)[-1] in names:
        return ()
    return (f"the launch names {path}; the figures are those of {model.id} (another profile: --model)",)


def _arithmetic(config: LaunchConfig, subject: Subject) -> list[Problem]:
    """What the engine does not check and no figure can be given for, all at once."""
    model = subject.model
    faults = []
    if config.model_path is None:
        faults.append(Problem("missing: the engine has no default for it", field="--model-path"))
    for name in ("tp_size", "ep_size", "dp_size", "max_running_requests", "page_size", "context_length"):
        value = getattr(config, name)
        if value is not None and value < 1:
            faults.append(Problem(f"must be 1 or more (got {value})", field=_flag(name), value=value))
    for name in ("pp_size", "nnodes"):
        value = getattr(config, name)
        if value is not None and value > 1:
            message = f"{value}: launches over several stages or machines are not modelled"
            faults.append(Problem(message, field=_flag(name), value=value))
    steps = config.speculative_num_steps
    if steps is not None and steps < 1:
        message = f"must be at least 1 (got {steps})"
        faults.append(
            Problem(message, field="--speculative-num-steps", value=steps, hint="leave it out for the default")
        )
    fraction = config.mem_fraction_static
    if fraction is not None and not 0 < fraction < 1:
        message = f"must lie between 0 and 1 (got {fraction:g})"
        faults.append(Problem(message, field="--mem-fraction-static", value=fraction))
    tp, ep = config.tp_size or 1, config.ep_size or 1
    if tp > 0 and model.n_heads % tp:
        faults.append(Problem(f"{tp} does not divide {model.n_heads} heads", field="--tp-size", value=tp))
    if ep > 1 and (tp % ep or (model.n_experts and model.n_experts % ep)):
        message = f"{ep} must divide tp_size {tp} and {model.n_experts} experts"
        faults.append(Problem(message, field="--ep-size", value=ep))
    return faults


def _config(path: str | None) -> dict[str, Any] | None:
    """The config.json of a model that is a folder here; a profile says less."""
    return read_hf_config(Path(path)) if path is not None and (Path(path) / "config.json").is_file() else None


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def predict_candidate(
    subject: Subject,
    question: Question,
    target: Target,
    candidate: Candidate,
    *,
    accept_len: float | None = None,
    without_overlap: bool = False,
    draft_steps: int = 0,
) -> Prediction:
    """Figures for one resolved candidate. ``without_overlap``: the launch turns the overlap scheduler off, whatever the
    build does; ``draft_steps``: of an autoregressive drafter, 0 for as many as the budget lets a path be deep.

    With ``accept_len`` the accept length is taken as measured; with None, and a run of that budget on record whose
    accept length the model does not reproduce (FN-08), both are used: the model's in ``predicted``, the measured one
    under the constant-step assumption.
    """
    drafter = subject.drafter if candidate.speculation is not Speculation.OFF else None
    models = load_models(subject.hardware, subject.model, drafter, subject.workload, subject.calibration)
    deepest = drafter.block_size - 1 if drafter is not None else 0
    if accept_len is not None and candidate.speculation is not Speculation.OFF:
        models = replace(models, acceptance=GivenAcceptance(accept_len))
    elif drafter is not None and not drafter.drafts_blocks and 0 < draft_steps < min(candidate.budget, deepest):
        models = replace(models, acceptance=ShallowAcceptance(models.acceptance, draft_steps))
    workload = subject.workload
    seats = candidate.max_running_requests // candidate.attention_dp_size * candidate.attention_dp_size
    n_running = float(min(workload.target_c, max(1, seats) * candidate.replicas))
    table = CandidateTable.of(candidate)
    length = served_length(workload, subject.model)
    graph_max_bs = candidate.cuda_graph_max_bs or None
    overlap = (0.0, 0.0) if without_overlap else target.overlap(drafter)
    scores = score(
        table, models, n_running=n_running, graph_max_bs=graph_max_bs, overlap=overlap, draft_steps=draft_steps
    )
    request = request_for(question, subject, models, target)
    solved = Solved(
        request=request,
        table=table,
        scores=scores,
        constraints=Constraints((), (1, 1, 1)),
        memory=memory_columns(
            table,
            subject.hardware,
            subject.model,
            drafter,
            workload,
            n_running=n_running,
            context_length_tok=length,
            chunked_prefill_tok=float(CHUNKED_PREFILL_TOK),
            draft_as_target=target.counts_draft_as_target,
        ),
        allowed=np.ones((1, 1, 1), dtype=bool),
        rank=scores.tok_per_s,
        n_candidates=1,
        choice=Cell(0, 0, 0),
    )
    finalists = Finalists.of(solved, [0])
    ttft = first_token(scores, workload).estimate(0)
    predicted = finalists.predicted(Cell(0, 0, 0), off_row=None, ttft=ttft)
    skipped = (
        []
        if predicted.kv_capacity_tok >= predicted.kv_needed_tok
        else [
            f"the KV pool holds {predicted.kv_capacity_tok:,.0f} tokens a rank, "
            f"{predicted.kv_needed_tok:,.0f} are needed: requests would queue or be retracted, the figure is too high"
        ]
    )
    broken = broken_limits(subject, request.target, candidate, accept_len_frac=scores.accept.value)
    return Prediction(
        effective=candidate,
        predicted=predicted,
        constant_step=_constant_step(subject, candidate, predicted.accept_len, given=accept_len is not None),
        broken=broken,
        assumptions=tuple(scores.step.notes),
        skipped=tuple(skipped),
        sources=tuple(scores.step.notes),
    )


def broken_limits(
    subject: Subject, target: Target, candidate: Candidate, *, accept_len_frac: Floats | None = None
) -> tuple[BindingLimit, ...]:
    """Limits that the candidate breaks on the known-good side."""
    table = CandidateTable.of(candidate)
    context = LimitContext(
        subject.hardware,
        subject.model,
        subject.workload,
        block_size=subject.drafter.block_size if subject.drafter is not None else None,
        accept_len=accept_len_frac,
    )
    broken = []
    for limit in subject.limits:
        if not holds_in_plan(limit, target.version.release):
            continue
        verdict = evaluate_limit(limit, table, context)
        if not bool(verdict.safe.all()):
            broken.append(binding_of(verdict, Cell(0, 0, 0)))
    return tuple(broken)


@dataclass(frozen=True, slots=True, eq=False)
class GivenAcceptance:
    """An accept length that was measured on the traffic itself."""

    accept_len: float
    note: str = "given"

    def ground(self, speculation: int, budget: int, topk: int) -> Provenance:
        return Provenance.MEASURED if speculation else Provenance.DERIVED

    def columns(self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike) -> AcceptColumns:
        value = np.where(np.asarray(speculation) > 0, self.accept_len, 1.0)
        return AcceptColumns(value, value, value)

    def sample(
        self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike, *, n_samples: int, seed: int
    ) -> Floats:
        value = np.where(np.asarray(speculation) > 0, self.accept_len, 1.0)
        return np.broadcast_to(value, (n_samples, value.size)).copy()


@dataclass(frozen=True, slots=True)
class ShallowAcceptance:
    """A drafter's acceptance where fewer draft steps run than its paths may be deep.

    A tree holds the greedy chain of as many steps, and cannot accept more than one token a step and the bonus token: in
    between nothing is known, so the middle is taken and the interval reaches over both.
    """

    inner: AcceptanceCurve
    draft_steps: int

    @property
    def note(self) -> str:
        return f"{self.inner.note}; between a chain of {self.draft_steps} and {self.draft_steps + 1}"

    def ground(self, speculation: int, budget: int, topk: int) -> Provenance:
        return Provenance.DERIVED

    def columns(self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike) -> AcceptColumns:
        tree, chain = self.inner.columns(speculation, budget, topk), self._chain(speculation)
        most = self.draft_steps + 1.0
        value = 0.5 * (chain.value + np.minimum(tree.value, most))
        return AcceptColumns(value, np.minimum(chain.low, value), np.minimum(tree.high, most))

    def sample(
        self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike, *, n_samples: int, seed: int
    ) -> Floats:
        drawn = self.inner.sample(speculation, budget, topk, n_samples=n_samples, seed=seed)
        kind, length = self._as_chain(speculation)
        chain = self.inner.sample(kind, length, np.ones_like(length), n_samples=n_samples, seed=seed)
        place = np.random.default_rng(seed).random((n_samples, 1))
        return np.asarray(chain + place * (np.maximum(np.minimum(drawn, self.draft_steps + 1.0), chain) - chain))

    def _as_chain(self, speculation: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        drafted = np.asarray(speculation) > 0
        return drafted.astype(np.int64), np.where(drafted, self.draft_steps, 0).astype(np.int64)

    def _chain(self, speculation: ArrayLike) -> AcceptColumns:
        kind, length = self._as_chain(speculation)
        return self.inner.columns(kind, length, np.ones_like(length))


def _constant_step(subject: Subject, candidate: Candidate, accept: Estimate, *, given: bool) -> Estimate | None:
    """tok/s if a step cost the same as in the measured run at the same concurrency, whatever its q_len.

    Scales a graph run on record by the accept lengths: X x accept / accept of that run (field notes: 285 x 5.8 / 4.48
    for budget 16). The accept length is the one given, else the measured one for that budget, else the model's.
    """
    runs = [run for run in field_runs() if (run.hardware, run.model) == (subject.hardware.id, subject.model.id)]
    base = next(
        (
            run
            for run in runs
            if run.tok_per_s
            and run.accept_len
            and run.concurrency == subject.workload.target_c
            and run.candidate.cuda_graph == candidate.cuda_graph
            and run.candidate.speculation is Speculation.TREE
        ),
        None,
    )
    if base is None or candidate.speculation is not Speculation.TREE:
        return None
    assert base.tok_per_s is not None
    assert base.accept_len is not None
    value, low, high, ref = accept.value, accept.low, accept.high, "given" if given else "the model"
    measured = _measured_accept(runs, candidate)
    if measured is not None and not given:
        assert measured.accept_len is not None
        value = measured.accept_len
        low, high, ref = measured.accept_low or value, measured.accept_high or value, measured.id
    scale = base.tok_per_s / base.accept_len
    return Estimate(
        value=scale * value,
        low=scale * low,
        high=scale * high,
        provenance=Provenance.DERIVED,
        note=f"{base.id} x accept length {value:g} ({ref}) / {base.accept_len:g}, step taken as equal",
    )


def _measured_accept(runs: Sequence[FieldRun], candidate: Candidate) -> FieldRun | None:
    """A run of the same budget whose accept length is on record."""
    return next(
        (
            run
            for run in runs
            if run.ok and run.accept_len and run.candidate.budget == candidate.budget and run.accept_low is not None
        ),
        None,
    )
