"""From a finished search to a Plan: the choice, what it is compared with, and every line of the explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner._record import record
from planner.domain import (
    Candidate,
    Comparison,
    Estimate,
    Launch,
    Lift,
    Plan,
    PlanStatus,
    Versions,
)
from planner.domain.describe import draft_words, layout_words
from planner.search.cell import Cell
from planner.search.choose import best_row
from planner.search.explain import (
    Alternative,
    alternatives,
    binding_limits,
    conflict_of,
    off_cell,
    refused_by,
)
from planner.search.sampled import Finalists
from planner.search.solve import Solved

__all__ = ["Emit", "Grounds", "answer"]

MINUTES_PER_LAUNCH = 10
"""Weights take about six minutes to load (FN-19), capture and one benchmark the rest."""

Emit = Callable[[Candidate], tuple[Launch, ...]]
"""Candidate to one launch for each replica."""


@record()
class Grounds:
    """What an answer carries beside the search: where it comes from and what was taken for granted."""

    versions: Versions
    engine_notes: tuple[str, ...]
    assumptions: tuple[str, ...]
    sources: tuple[str, ...]
    unknown_ceilings: tuple[str, ...]
    """Ceilings asked for which there is no model."""
    ttft: Callable[[Solved, Cell], Estimate | None]


def answer(solved: Solved, grounds: Grounds, *, emit: Emit, beside: tuple[Solved, Emit] | None = None) -> Plan:
    """The plan of a search; an infeasible one carries the conflict instead of a launch.

    Args:
        solved: the search for the build of the best plan.
        grounds: versions, notes and assumptions to print.
        emit: candidate to launch, for that build.
        beside: the same question for the other build.
    """
    request = solved.request
    lifted = tuple(Lift(id=id_, reason=reason) for id_, reason in sorted(request.lifts.items()))
    choice = solved.choice
    if choice is None:
        return Plan(
            status=PlanStatus.INFEASIBLE,
            status_note="no candidate meets the requests and the limits",
            workload=request.workload,
            risk=request.risk,
            launch=None,
            effective=None,
            predicted=None,
            lifted=lifted,
            conflict=conflict_of(solved),
            skipped=grounds.unknown_ceilings,
            assumptions=grounds.assumptions,
            engine_notes=grounds.engine_notes,
            sources=grounds.sources,
            versions=grounds.versions,
            n_candidates=solved.n_candidates,
        )
    others = alternatives(solved, choice)
    refusals = refused_by(solved, choice)
    off = off_cell(solved, choice)
    rows = [choice.row, *(other.cell.row for other in others), *(cell.row for _, cell in refusals)]
    rows += [off.row] if off is not None else []
    rows += [
        row for item in solved.constraints.items if item.verdict is not None for row in _best_without(solved, item.id)
    ]
    best = best_row(solved.rank, solved.allowed)
    rows += [best] if best is not None else []
    finalists = Finalists.of(solved, rows)
    off_row = off.row if off is not None and off.row != choice.row else None

    def compare(label: str, cell: Cell, note: str | None = None) -> Comparison:
        return Comparison(
            label=label,
            candidate=solved.candidate(cell),
            predicted=finalists.predicted(cell, off_row=off_row if cell.row != off_row else None),
            p_choice_better=finalists.p_better(choice.row, cell.row),
            note=note,
        )

    candidate = solved.candidate(choice)
    launches = emit(candidate)
    predicted = finalists.predicted(choice, off_row=off_row, ttft=grounds.ttft(solved, choice))
    off_comparison = None
    if off is not None and off_row is not None:
        off_comparison = compare("speculation off", off)
    others = [other for other in others if other.cell.row != off_row]
    return Plan(
        status=PlanStatus.UNKNOWN if grounds.unknown_ceilings else PlanStatus.OPTIMAL,
        status_note="; ".join(grounds.unknown_ceilings) or None,
        workload=request.workload,
        risk=request.risk,
        launch=launches[0],
        launches=launches,
        effective=candidate,
        predicted=predicted,
        off=off_comparison,
        other_build=_other_build(beside, finalists, choice) if beside is not None else None,
        binding=binding_limits(solved, choice, finalists),
        ties=tuple(compare(other.label, other.cell, _never_run(solved, other)) for other in others if other.tie),
        runners_up=tuple(compare(other.label, other.cell) for other in others if not other.tie),
        refused=tuple(refused for refused, _ in refusals),
        lifted=lifted,
        skipped=grounds.unknown_ceilings,
        assumptions=grounds.assumptions,
        next_measurement=_next(solved, choice, off, others, finalists),
        safe_because=_safe_because(candidate, request.measured),
        engine_notes=grounds.engine_notes,
        sources=grounds.sources,
        versions=grounds.versions,
        n_candidates=solved.n_candidates,
    )


def _best_without(solved: Solved, id_: str) -> list[int]:
    row = best_row(solved.rank, solved.constraints.mask(without=(id_,)))
    return [] if row is None else [row]


def _other_build(beside: tuple[Solved, Emit], finalists: Finalists, choice: Cell) -> Comparison | None:
    solved, emit = beside
    if solved.choice is None:
        return None
    cell = solved.choice
    off = off_cell(solved, cell)
    rows = [cell.row] + ([off.row] if off is not None else [])
    own = Finalists.of(solved, rows)
    off_row = off.row if off is not None and off.row != cell.row else None
    mine, theirs = finalists.draws(choice.row), own.draws(cell.row)
    candidate = solved.candidate(cell)
    return Comparison(
        label=_build_name(solved),
        candidate=candidate,
        predicted=own.predicted(cell, off_row=off_row),
        p_choice_better=float(np.mean(mine > theirs) + 0.5 * np.mean(mine == theirs)),
        launches=emit(candidate),
    )


def _build_name(solved: Solved) -> str:
    dialect, version = solved.request.target.dialect, solved.request.target.version
    return f"build {dialect.id} (on {version})" if dialect.has_tree else f"newest release {version}"


def _never_run(solved: Solved, other: Alternative) -> str | None:
    candidate = solved.candidate(other.cell)
    run = any(
        (past.speculation, past.budget, past.tp_size, past.cuda_graph)
        == (candidate.speculation, candidate.budget, candidate.tp_size, candidate.cuda_graph)
        for past in solved.request.measured
    )
    return None if run else "never run"


def _safe_because(candidate: Candidate, measured: Sequence[Candidate]) -> str | None:
    """Whether every graph of the choice is among those of a run that went well."""
    for past in measured:
        same = all(
            getattr(past, name) == getattr(candidate, name)
            for name in ("tp_size", "ep_size", "attention_dp_size", "attention_backend", "speculation", "cuda_graph")
        )
        if (
            same
            and candidate.cuda_graph
            and past.q_len == candidate.q_len
            and past.cuda_graph_max_bs >= candidate.cuda_graph_max_bs
            and past.enable_nccl_nvls == candidate.enable_nccl_nvls
        ):
            build = "" if past.dialect == candidate.dialect else "; evidence from that build only"
            return (
                f"every graph (bs <= {candidate.cuda_graph_max_bs}, q_len {candidate.q_len}) is among those of a run "
                f"that went well (bs <= {past.cuda_graph_max_bs}, q_len {past.q_len}){build}"
            )
    return None


def _next(
    solved: Solved, choice: Cell, off: Cell | None, others: Sequence[Alternative], finalists: Finalists
) -> str | None:
    """The comparison whose outcome is worth most: the expected tok/s gained by knowing which of two is better."""
    candidates: list[tuple[str, Cell]] = [(other.label, other.cell) for other in others]
    if off is not None and off.row != choice.row:
        candidates.append(("speculation off", off))
    if not candidates:
        return None
    mine = finalists.draws(choice.row)
    worth = [float(np.mean(np.maximum(0.0, finalists.draws(cell.row) - mine))) for _, cell in candidates]
    best = int(np.argmax(worth))
    label, cell = candidates[best]
    other = solved.candidate(cell)
    what = f"{draft_words(other)}, {layout_words(other)}"
    if worth[best] < 0.002 * float(np.mean(mine)):
        return (
            f"measure the choice at C={solved.request.workload.target_c} (1 launch, about {MINUTES_PER_LAUNCH} min): "
            "nothing else is close"
        )
    return (
        f"measure the choice and {label} ({what}) at C={solved.request.workload.target_c} "
        f"(2 launches, about {2 * MINUTES_PER_LAUNCH} min): decides the choice, worth {worth[best]:,.0f} tok/s "
        "on average"
    )
