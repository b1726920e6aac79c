"""How far acceptance predictions are off: every public curve in the package, fitted on some points and tried on the
others.

The rows are computed when asked for, from ``planner/data/acceptance/curves.toml``; nothing here is stored. The prior
was set with these curves in view (all but the EAGLE-3 trees), see docs/acceptance.md for what that is worth.
"""

from __future__ import annotations

import itertools
import math
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.estimate.acceptance.fit import fit_acceptance
from planner.estimate.accuracy import AccuracyRow, accuracy_row

__all__ = ["PublicCurve", "Trial", "evaluate_acceptance", "leave_out", "public_curves", "rejected_sources"]

_NEAR_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class PublicCurve:
    """One published curve."""

    source: str
    name: str
    kind: str
    block_size: int
    budget: tuple[int, ...]
    accept_len: tuple[float, ...]
    rounds: tuple[int | None, ...]
    ref: str
    topk: int | None = None
    tree_shape: str = "best_first"


@dataclass(frozen=True, slots=True)
class Trial:
    """One prediction of a point that the fit did not see."""

    source: str
    curve: str
    n_known: int
    error: float
    """(predicted - measured) / measured."""
    inside: bool
    """Whether the measured value lies in the 90 % interval."""


def public_curves(kind: str | None = None) -> tuple[PublicCurve, ...]:
    """The packaged curves, all or of one kind (``tree`` or ``chain``)."""
    from planner.data.files import read_text

    curves = []
    for entry in tomllib.loads(read_text("acceptance/curves.toml"))["curve"]:
        if kind is not None and entry["kind"] != kind:
            continue
        budget = tuple(entry["budget"])
        curves.append(
            PublicCurve(
                source=entry["source"],
                name=entry["name"],
                kind=entry["kind"],
                block_size=entry["block_size"],
                budget=budget,
                accept_len=tuple(float(value) for value in entry["accept_len"]),
                rounds=tuple(entry.get("rounds", (None,) * len(budget))),
                ref=entry["ref"],
                topk=entry.get("topk"),
                tree_shape=entry.get("tree_shape", "best_first"),
            )
        )
    return tuple(curves)


def leave_out(curves: Iterable[PublicCurve], n_known: int, *, near_factor: float = math.inf) -> list[Trial]:
    """Fit every subset of ``n_known`` points of every curve and predict the other points of it.

    Args:
        curves: curves to try; those with no more than ``n_known`` points give nothing.
        n_known: points the fit sees.
        near_factor: predict only budgets within this factor of a known one.
    """
    trials = []
    for curve in curves:
        rows = list(zip(curve.budget, curve.accept_len, curve.rounds, strict=True))
        for known in itertools.combinations(range(len(rows)), n_known):
            others = [
                i
                for i in range(len(rows))
                if i not in known
                and any(max(rows[i][0] / rows[k][0], rows[k][0] / rows[i][0]) <= near_factor for k in known)
            ]
            if not others:
                continue
            fit = fit_acceptance(
                [{"budget": rows[k][0], "accept_len": rows[k][1], "rounds": rows[k][2]} for k in known],
                curve.block_size,
                topk=curve.topk,
                kind=curve.kind,
                tree_shape=curve.tree_shape,
            )
            answer = fit.predict_band([rows[i][0] for i in others])
            for j, i in enumerate(others):
                measured = rows[i][1]
                inside = bool(answer.low[j] <= measured <= answer.high[j])
                error = float(answer.value[j]) / measured - 1
                trials.append(Trial(curve.source, f"{curve.source}/{curve.name}", n_known, error, inside))
    return trials


def _equal_weight_per_source(trials: Sequence[Trial]) -> list[float]:
    counts: dict[str, int] = {}
    for trial in trials:
        counts[trial.source] = counts.get(trial.source, 0) + 1
    return [1 / counts[trial.source] for trial in trials]


def rejected_sources(trials: Sequence[Trial], *, level_frac: float = 0.01) -> list[str]:
    """Sources whose coverage a two-sided binomial test against 90 % rejects, each curve counted once (its mean
    coverage)."""
    rejected = []
    for source in sorted({trial.source for trial in trials}):
        by_curve: dict[str, list[bool]] = {}
        for trial in trials:
            if trial.source == source:
                by_curve.setdefault(trial.curve, []).append(trial.inside)
        n = len(by_curve)
        hits = round(sum(float(np.mean(inside)) for inside in by_curve.values()))
        chance = [math.comb(n, k) * 0.9**k * 0.1 ** (n - k) for k in range(n + 1)]
        if sum(p for p in chance if p <= chance[hits] * (1 + 1e-9)) < level_frac:
            rejected.append(source)
    return rejected


def _row(
    group: str,
    trials: Sequence[Trial],
    *,
    goal_mape: float | None = None,
    goal_p90: float | None = None,
    note: str = "",
) -> AccuracyRow:
    return accuracy_row(
        group,
        [trial.error for trial in trials],
        inside=[trial.inside for trial in trials],
        weights=_equal_weight_per_source(trials),
        goal_mape=goal_mape,
        goal_p90=goal_p90,
        note=note,
    )


def _coverage_row(trials: Sequence[Trial]) -> AccuracyRow:
    rejected = rejected_sources(trials)
    row = accuracy_row(
        "acceptance, 90 % interval, all of the above pooled",
        [trial.error for trial in trials],
        inside=[trial.inside for trial in trials],
        weights=_equal_weight_per_source(trials),
        goal_coverage=(0.86, 0.96),
        note=f"sources rejected by a binomial test at 1 %, blocked by curve: {', '.join(rejected) or 'none'}",
    )
    return AccuracyRow(
        row.group,
        row.n,
        row.mape,
        row.p90,
        row.bias,
        row.coverage,
        f"{row.goal}, no source rejected",
        bool(row.met) and not rejected,
        row.note,
    )


def _timing_row() -> AccuracyRow:
    rows = [(budget, 1 + 1.6 * math.log2(1 + budget)) for budget in (4, 6, 8, 12, 16, 24, 32, 48, 64, 128)]
    start = time.perf_counter()
    fit_acceptance(rows, 16)
    elapsed = time.perf_counter() - start
    return AccuracyRow(
        "acceptance, time of a fit of 10 observations",
        10,
        None,
        None,
        None,
        None,
        "under 1 s",
        elapsed < 1.0,
        f"{elapsed:.2f} s here",
    )


def evaluate_acceptance() -> list[AccuracyRow]:
    """The acceptance rows of the accuracy table, computed now (a few seconds)."""
    trees = [curve for curve in public_curves("tree") if curve.source != "dflash-eagle3"]
    eagle = [curve for curve in public_curves("tree") if curve.source == "dflash-eagle3"]
    chains = public_curves("chain")
    n_sources = len({curve.source for curve in trees})
    weighted = f"equal weight per source, {len(trees)} curves of {n_sources} sources"
    by_known = {n: leave_out(trees, n, near_factor=_NEAR_FACTOR) for n in (1, 2, 3)}
    chain_by_known = {n: leave_out(chains, n) for n in (1, 2, 3)}
    eagle_trials = leave_out(eagle, 1)
    goals: dict[int, tuple[float, float | None]] = {1: (0.038, None), 2: (0.028, 0.065), 3: (0.028, None)}
    rows = [
        _row(
            f"acceptance, {n} budget{'s' if n > 1 else ''} known, others within 4x",
            trials,
            goal_mape=goals[n][0],
            goal_p90=goals[n][1],
            note=weighted,
        )
        for n, trials in by_known.items()
    ]
    rows.append(
        _row(
            "acceptance, EAGLE-3 trees, 16 and 60 nodes from each other",
            eagle_trials,
            note="28 cells of arXiv:2602.06036 Table 1; no part in the means of the prior",
        )
    )
    rows += [
        _row(
            f"chain length, {n} point{'s' if n > 1 else ''} known",
            trials,
            goal_mape=0.03 if n == 2 else None,
            goal_p90=0.075 if n == 2 else None,
            note=f"{len(chains)} curves of 1 to 8 drafted tokens, all others predicted",
        )
        for n, trials in chain_by_known.items()
    ]
    pooled = [trial for trials in (*by_known.values(), *chain_by_known.values()) for trial in trials]
    rows.append(_coverage_row(pooled + eagle_trials))
    rows.append(_timing_row())
    return rows
