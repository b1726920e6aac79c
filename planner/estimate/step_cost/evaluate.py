"""The accuracy of the step-cost model on measurements that it did not see, from the observations that ship."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from planner.domain import Estimate, ModelProfile
from planner.estimate.accuracy import AccuracyRow, accuracy_row
from planner.estimate.step_cost.api import Row, StepCostFit, fit_step_cost
from planner.estimate.step_cost.build_calibrations import fit_prior
from planner.estimate.step_cost.observations import (
    EXCLUDED,
    TPOT_SYSTEMS,
    autoregressive_rows,
    field_rows,
    overlapped_rows,
    quoted_model,
    round_rows,
    tpot_rows,
)
from planner.estimate.step_cost.parameters import ParameterPosterior
from planner.estimate.step_cost.rows import read_rows

__all__ = ["corners_known", "evaluate_step_cost", "launch_bounds_s", "leave_gpu_out", "two_points_known"]

_MODEL = "kimi-k2.6"

Errors = tuple[list[float], list[bool]]
"""Relative errors, and whether the measurement lies in the 90 % interval."""


def _compare(fit: StepCostFit, rows: Sequence[Row]) -> Errors:
    estimates = fit.predict(rows)
    return _errors(estimates, [float(row["step_s"]) for row in rows])  # type: ignore[arg-type]


def _errors(estimates: Iterable[Estimate], measured: Iterable[float]) -> Errors:
    pairs = list(zip(estimates, measured, strict=True))
    return [e.value / y - 1 for e, y in pairs], [e.low <= y <= e.high for e, y in pairs]


def _prior_without(system: str) -> ParameterPosterior:
    """The prior as it would be had the system never been measured."""
    return fit_prior([name for name in TPOT_SYSTEMS if name != system])[0]


def leave_gpu_out(system: str, *, with_excluded: bool = False) -> Errors:
    """Every TPOT row of a system, predicted from the prior of the others, nothing calibrated."""
    fit = fit_step_cost(hw=system, model=_MODEL, prior=_prior_without(system))
    return _compare(fit, tpot_rows(system, with_excluded=with_excluded))


def two_points_known(system: str, *, with_excluded: bool = False) -> Errors:
    """For each configuration its lowest and highest concurrency known, those between predicted; prior of the others."""
    prior = _prior_without(system)
    groups: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for row in tpot_rows(system, with_excluded=with_excluded):
        names = ("engine_version", "weight_dtype", "tp_size", "ep_size", "context_tok", "output_tok")
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    errors: list[float] = []
    inside: list[bool] = []
    for rows in groups.values():
        ordered = sorted(rows, key=lambda row: float(row["concurrency"]))  # type: ignore[arg-type]
        if len(ordered) >= 3:
            fit = fit_step_cost([ordered[0], ordered[-1]], hw=system, model=_MODEL, prior=prior)
            more = _compare(fit, ordered[1:-1])
            errors += more[0]
            inside += more[1]
    return errors, inside


def corners_known(rows: Sequence[Row], hw: str, model: str | ModelProfile) -> Errors:
    """Round times on a (C, q_len) grid: the four corners known, all others predicted."""
    q_lens, runs = ([float(row[name]) for row in rows] for name in ("q_len", "concurrency"))  # type: ignore[arg-type]
    corner = [
        q in (min(q_lens), max(q_lens)) and c in (min(runs), max(runs)) for q, c in zip(q_lens, runs, strict=True)
    ]
    fit = fit_step_cost([row for row, known in zip(rows, corner, strict=True) if known], hw=hw, model=model)
    return _compare(fit, [row for row, known in zip(rows, corner, strict=True) if not known])


def evaluate_step_cost() -> list[AccuracyRow]:
    """Rows of the accuracy table, each a leave-out figure; nothing here is in-sample."""
    rows: list[AccuracyRow] = []
    pooled: Errors = ([], [])

    def add(group: str, found: Errors, *, goal: float | None = None, note: str = "", counts: bool = True) -> None:
        errors, inside = found
        if counts:
            pooled[0].extend(errors)
            pooled[1].extend(inside)
        rows.append(accuracy_row(group, errors, inside=inside, goal_mape=goal, note=note))

    goals = {"b200": ("Blackwell", 0.10), "h200": ("Hopper", 0.20)}
    left_out = "left out: " + "; ".join(f"{part}: {why}" for part, why in EXCLUDED)
    for with_excluded in (False, True):
        tail = ", excluded rows put back" if with_excluded else ""
        note = left_out if not with_excluded else "the rows named above count as they are listed"
        for system in TPOT_SYSTEMS:
            family, goal = goals[system]
            add(
                f"autoregressive TPOT, {system} left out ({family}){tail}",
                leave_gpu_out(system, with_excluded=with_excluded),
                goal=None if with_excluded else goal,
                note=note,
                counts=not with_excluded,
            )
        pairs = [two_points_known(system, with_excluded=with_excluded) for system in TPOT_SYSTEMS]
        add(
            f"autoregressive TPOT, lowest and highest C known{tail}",
            _joined(pairs),
            goal=None if with_excluded else 0.045,
            note=note,
            counts=not with_excluded,
        )
    add(
        "round time on a (C, q_len) grid, 4 corners known",
        corners_known(round_rows(), "h100", quoted_model("qwen3-4b")),
        goal=0.045,
        note="6 of the 14 measured points between the corners (quoted); on all 14 see docs/step_cost.md",
    )
    add(
        "autoregressive step of other models, nothing calibrated",
        _joined(
            [
                _compare(fit_step_cost(hw="b200", model=quoted_model(model_id)), measured)
                for model_id, measured in autoregressive_rows().items()
            ]
        ),
        note="Qwen3-4B, 8B, Coder-30B-A3B on one B200 with SGLang (DFlash Table 3): models that no fit has seen",
    )
    add(
        "plain and DFLASH chain steps with overlap, nothing calibrated",
        _compare(fit_step_cost(hw="h100", model=quoted_model("qwen3-4b")), overlapped_rows()),
        note="Qwen3-4B on one H100 with SGLang (diffusion-sparked-tree), the drafter's own forward not counted",
    )
    fit = fit_step_cost(field_rows(), hw="b300", model=_MODEL, drafter="kimi-k2.6-dflash", noise_frac=0.06)
    add("eager step, FN-08 and FN-14, from FN-01 to FN-03", _compare(fit, field_rows(role="predict")))
    note = "excluded rows left out; the rows of one configuration err together, so that these are few independent cases"
    add("step cost, 90 % interval, all of the above pooled", pooled, note=note, counts=False)
    rows.append(_timing_row())
    return rows


def _joined(parts: Sequence[Errors]) -> Errors:
    return [error for errors, _ in parts for error in errors], [hit for _, inside in parts for hit in inside]


def _timing_row() -> AccuracyRow:
    rows = tpot_rows("b200")[:10]
    start = time.perf_counter()
    fit_step_cost(rows, hw="b200", model=_MODEL)
    elapsed = time.perf_counter() - start
    group, note = "step cost, time of a fit of 10 observations", f"{elapsed:.2f} s here"
    return AccuracyRow(group, 10, None, None, None, None, "under 1 s", elapsed < 1.0, note)


def launch_bounds_s() -> list[tuple[str, tuple[float, float]]]:
    """What the eager field notes leave for launches in one step: measured step minus host terms, (low, high) by note.

    FN-08 spans its accept length (5.3 to 6.4 at 111 tok/s), FN-14 the two graph runs (285 and 303 tok/s).
    """
    fit = fit_step_cost(field_rows(), hw="b300", model=_MODEL, drafter="kimi-k2.6-dflash", noise_frac=0.06)
    model = fit.step_model()
    spans = {"FN-08": (5.3 / 111, 6.4 / 111), "FN-14": (3.8 * 4.48 / 303, 3.8 * 4.48 / 285)}
    bounds = []
    for group in read_rows(field_rows(role="predict"), hardware=fit.hardware, model=fit.model, drafter=fit.drafter):
        parts = model.predict_columns(group.batch).parts
        for k, position in enumerate(group.index):
            name = str(field_rows(role="predict")[position]["id"])
            rest = float(parts["host"][k] + parts["prefill"][k])
            low, high = spans[name]
            bounds.append((name, (low - rest, high - rest)))
    return bounds
