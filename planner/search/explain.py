"""Why this plan: binding limits and what each costs, what was refused, ties, runners-up, conflicts, the next run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import BindingLimit, Conflict, Estimate, Limit, Refused
from planner.domain.describe import describe
from planner.domain.limit import Consequence, LimitShape, LimitStatus
from planner.domain.table import SPECULATION_BY_CODE
from planner.limits import LimitVerdict
from planner.search.cell import Cell
from planner.search.choose import best_row, smallest_conflict, tied_rows
from planner.search.sampled import Finalists
from planner.search.solve import Solved

__all__ = ["Alternative", "alternatives", "binding_limits", "binding_of", "conflict_of", "off_cell", "refused_by"]

Bools = NDArray[np.bool_]

KV_ID = "KV-CAPACITY"


@record()
class Alternative:
    """Another way, with what makes it other."""

    label: str
    cell: Cell
    tie: bool


def off_cell(solved: Solved, choice: Cell) -> Cell | None:
    """The best allowed plan without speculation."""
    return _best_cell(solved, solved.allowed & (solved.table.speculation == 0)[:, None, None], near=choice)


def alternatives(solved: Solved, choice: Cell) -> list[Alternative]:
    """The best allowed candidate of each kind other than the choice's, best first, ties marked.

    Kinds: speculation off, chain, tree; and, within the choice's kind, another layout, graphs off
    (or on, where the choice runs without).
    """
    table, rate = solved.table, solved.scores.tok_per_s
    tied = set(tied_rows(solved.rank, solved.allowed).tolist())
    same_layout = np.ones(len(table), dtype=bool)
    for name in ("tp_size", "ep_size", "attention_dp_size"):
        column = getattr(table, name)
        same_layout &= column == column[choice.row]
    kind = int(table.speculation[choice.row])
    found: list[Alternative] = []

    def add(label: str, rows: Bools) -> None:
        rows = rows & (np.arange(len(table)) != choice.row)
        cell = _best_cell(solved, solved.allowed & rows[:, None, None], near=choice)
        if cell is not None and all(cell.row != other.cell.row for other in found):
            found.append(Alternative(label, cell, cell.row in tied))

    for code, name in enumerate(SPECULATION_BY_CODE):
        if code != kind:
            add("speculation off" if code == 0 else name.value, table.speculation == code)
    if kind == 2:
        budget = int(table.budget[choice.row])
        for label, rows in (
            ("smaller tree", table.budget < budget),
            ("larger tree", table.budget > budget),
            ("other width", (table.budget == budget) & (table.topk != table.topk[choice.row])),
        ):
            add(label, rows & (table.speculation == 2) & (table.cuda_graph == table.cuda_graph[choice.row]))
    if kind == 1:
        budget = int(table.budget[choice.row])
        add("other chain length", (table.speculation == 1) & (table.budget != budget))
    add("other layout", ~same_layout)
    for past in solved.request.measured:
        in_layout = (
            (table.tp_size == past.tp_size) & (table.ep_size == past.ep_size) & (table.replicas == past.replicas)
        )
        add("layout of the evidence", in_layout & ~same_layout)
    if table.cuda_graph[choice.row]:
        add("graphs off", ~table.cuda_graph)
    else:
        add("graphs on", table.cuda_graph)
    return sorted(found, key=lambda other: -float(rate[other.cell.row]))


def binding_limits(solved: Solved, choice: Cell, finalists: Finalists) -> tuple[BindingLimit, ...]:
    """Every limit that speaks for the choice or holds something better back, the KV pool, and the lifted ones."""
    entries = []
    best_allowed = best_row(solved.rank, solved.allowed)
    assert best_allowed is not None
    for item in solved.constraints.items:
        if item.verdict is None:
            continue
        better = best_row(solved.rank, solved.constraints.mask(without=(item.id,)))
        held_back = better is not None and better != best_allowed
        speaks = bool(_cell_of(item.verdict.applies, choice))
        if not speaks and not held_back:
            continue
        cost = finalists.gain(better, best_allowed) if better is not None and held_back else None
        entries.append(binding_of(item.verdict, choice, cost=cost))
    memory = solved.memory
    plan = float(memory.needed_tok[choice.row])
    fraction = float(solved.table.mem_fraction_static[choice.fraction])
    good = memory.capacity_tok(solved.request.models.hardware, choice, fraction)
    entries.append(
        BindingLimit(
            id=KV_ID,
            title="KV tokens/rank",
            plan=plan,
            known_good=good,
            known_bad=None,
            margin_frac=(good - plan) / good if good else 0.0,
            status=LimitStatus.ESTABLISHED,
            consequence=Consequence.OOM,
            refs=("memory model, docs/memory.md",),
        )
    )
    return tuple(entries)


def binding_of(verdict: LimitVerdict, cell: Cell, *, cost: Estimate | None = None) -> BindingLimit:
    """A limit as it stands for one cell; the plan's value only where the limit speaks."""
    limit = verdict.limit
    value = None
    if verdict.value is not None and bool(_cell_of(verdict.applies, cell)):
        value = _float_of(verdict.value, cell)
    margin = None
    if value is not None and limit.known_good:
        room = limit.known_good - value if limit.shape is LimitShape.AT_MOST else value - limit.known_good
        margin = room / limit.known_good
    return BindingLimit(
        id=limit.id,
        title=limit.title,
        plan=value,
        known_good=limit.known_good,
        known_bad=limit.known_bad,
        margin_frac=margin,
        cost_tok_per_s=cost.value if cost is not None else 0.0,
        cost_low_tok_per_s=cost.low if cost is not None else 0.0,
        cost_high_tok_per_s=cost.high if cost is not None else 0.0,
        status=limit.status,
        consequence=limit.consequence,
        refs=tuple(evidence.ref for evidence in limit.evidence),
    )


def refused_by(solved: Solved, choice: Cell) -> list[tuple[Refused, Cell]]:
    """For each limit, the best candidate that this limit alone refuses, when the models put it within reach of the
    choice (half its tok/s or more)."""
    found = []
    never: Bools = np.asarray(~solved.allowed.any(axis=(1, 2)))
    floor = 0.5 * float(solved.scores.tok_per_s[choice.row])
    for item in solved.constraints.items:
        if item.verdict is None:
            continue
        only = solved.constraints.mask(without=(item.id,)) & never[:, None, None]
        cell = _best_cell(solved, only, near=choice)
        if cell is None or float(solved.scores.tok_per_s[cell.row]) < floor:
            continue
        limit = item.verdict.limit
        bad = [
            evidence.ref.removeprefix("field note ") for evidence in limit.evidence if _is_bad(limit, evidence.value)
        ]
        refused = Refused(
            what=describe(solved.candidate(cell)),
            by=limit.id,
            why=f"{limit.consequence.value.replace('_', ' ')}, {limit.status.value}"
            + (f": {', '.join(bad)}" if bad else ""),
            tok_per_s=float(solved.scores.tok_per_s[cell.row]),
            refs=tuple(evidence.ref for evidence in limit.evidence),
        )
        found.append((refused, cell))
    return found


def conflict_of(solved: Solved) -> Conflict:
    """The smallest set of requests, limits and facts that cannot hold together, and what each would let go."""
    ids = smallest_conflict(solved.constraints)
    items = [solved.constraints[id_] for id_ in ids]
    relaxations = []
    for item in items:
        allowed = solved.constraints.mask(without=(item.id,))
        cell = solved.pick(allowed)
        if cell is None or not item.relax:
            continue
        if item.kind in ("memory", "engine") or item.id == "REQUEST-TARGET-C":
            # What lets these go changes the question (fewer clients, shorter requests): no figure of this one holds.
            relaxations.append(item.relax)
            continue
        rate = float(solved.scores.tok_per_s[cell.row])
        tpot_ms = float(solved.scores.tpot_s[cell.row]) * 1e3
        per_user = rate / solved.scores.n_running
        what = f"{rate:,.0f} tok/s, {per_user:,.1f} a user, TPOT {tpot_ms:.1f} ms"
        relaxations.append(f"{item.relax}: then {describe(solved.candidate(cell))} ({what})")
    text = "these cannot hold together: " + "; ".join(item.text for item in items)
    return Conflict(ids=ids, text=text, relaxations=tuple(relaxations))


def _best_cell(solved: Solved, allowed: Bools, *, near: Cell) -> Cell | None:
    """The best allowed cell of a kind; among its ties the one with the settings of ``near``, so that a comparison
    differs in what it is about and little else."""
    return solved.pick(allowed, near=solved.candidate(near))


def _is_bad(limit: Limit, value: float | None) -> bool:
    if limit.known_good is None:
        return True
    return value is not None and (
        value > limit.known_good if limit.shape is LimitShape.AT_MOST else value < limit.known_good
    )


def _cell_of(mask: NDArray[np.generic], cell: Cell) -> object:
    index = tuple(
        0 if length == 1 else at for at, length in zip((cell.row, cell.size, cell.fraction), mask.shape, strict=True)
    )
    return mask[index]


def _float_of(values: NDArray[np.float64], cell: Cell) -> float:
    return float(_cell_of(values, cell))  # type: ignore[arg-type]
