"""``fit``: observations in, a calibration and its report out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from planner.data import load_drafter, load_hardware, load_model
from planner.domain import (
    AcceptPoint,
    DrafterProfile,
    Estimate,
    HardwareProfile,
    ModelProfile,
    Observation,
    Source,
    SourceKind,
)
from planner.domain.fitting import AcceptFit, AcceptFitPoint, FitParameter, FitReport, FitResidual, FitSpan
from planner.errors import InputError, Problem
from planner.estimate.acceptance import TreeAcceptance, fit_acceptance
from planner.estimate.step_cost import Calibration, StepCostFit, fit_step_cost
from planner.estimate.step_cost.batch import SPECULATION_KINDS
from planner.estimate.step_cost.default import packaged_calibration
from planner.estimate.step_cost.parameters import PARAMETERS
from planner.estimate.step_cost.rows import framework_of, place_of
from planner.search.observed import Observed, observed_rows

__all__ = ["FitResult", "fit", "fit_observed"]

Row = Mapping[str, object]

_MAX_ONE_BY_ONE = 40
"""Up to so many observations are left out one by one; of more, a tenth at a time."""
_N_PARTS = 10
_FAR_FRAC = 0.25
"""Residual that is pointed out: run-to-run spread on record is 2 to 6 %."""
_FALSE = ("false", "0", "0.0", "no", "off")


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """A fit: what predicts, what is written to a file, what is told."""

    step_cost: StepCostFit
    calibration: Calibration
    report: FitReport


def fit(
    observations: Iterable[Observation | Row],
    *,
    hw: str | Path | HardwareProfile,
    model: str | Path | ModelProfile,
    drafter: str | Path | DrafterProfile | None = None,
    source: str = "observations",
    units_checked: bool = False,
) -> FitResult:
    """Fit step cost, and acceptance where accept lengths were observed, to runs of one machine and model.

    Starts from the packaged calibration of the system and model where there is one, else from the prior.

    Args:
        observations: ledger observations, or rows as :func:`planner.fit_step_cost` takes them. Those of another machine
            or model, failed ones, and those that were not timed are left out and counted in the report.
        hw: id, profile or TOML file.
        model: id, profile, or a folder with config.json.
        drafter: id or profile of the draft model; without one accept lengths are not fitted.
        source: where the observations come from, for the file.
        units_checked: the steps really are that long or short.

    Raises:
        InputError: nothing usable, faults in rows, duplicated or contradictory observations, steps that look like
            milliseconds, an accept length above its cap, bonus tokens counted in some runs only.
    """
    hardware, target = load_hardware(hw), load_model(model)
    observed = observed_rows(observations, hardware=hardware, model=target)
    return fit_observed(
        observed, hardware=hardware, model=target, drafter=drafter, source=source, units_checked=units_checked
    )


def fit_observed(
    observed: Observed,
    *,
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: str | Path | DrafterProfile | None = None,
    source: str,
    units_checked: bool = False,
) -> FitResult:
    """:func:`fit` for rows that are read already.

    Raises:
        InputError: as :func:`fit`.
    """
    if not observed.rows:
        why = "; ".join(observed.left_out) or "no observations"
        hint = f"give runs of {model.id} on {hardware.id}, with a measured step_s, tpot_s or tok_per_s"
        raise InputError([Problem(f"nothing to fit: {why}", hint=hint)])
    draft = load_drafter(drafter) if drafter is not None else None
    base = packaged_calibration(hardware, model) if _is_sglang(observed.rows) else None

    def fitted_on(rows: Sequence[Row], checked: bool = True) -> StepCostFit:
        return fit_step_cost(rows, hw=hardware, model=model, drafter=draft, base=base, units_checked=checked)

    step_cost = fitted_on(observed.rows, units_checked)
    notes = [
        f"{len(observed.rows)} observation{'s' if len(observed.rows) > 1 else ''} for {len(PARAMETERS)} parameters: "
        "what they do not say stays at its prior"
    ]
    points: tuple[AcceptPoint, ...] = ()
    curves: tuple[AcceptFit, ...] = ()
    if step_cost.drafter is not None:
        points, curves = _acceptance(observed.rows, model, step_cost.drafter, source)
    elif any(row.get("accept_len") is not None and _q_len(row) > 1 for row in observed.rows):
        notes.append("accept lengths are not fitted: no drafter is named (--drafter)")
    calibration = step_cost.calibration(
        source if base is None else f"{source}, on top of {base.source}", accept_points=points
    )
    residuals = _left_out(_residuals(step_cost), observed.rows, fitted_on)
    notes += [_far_off(row) for row in residuals if abs(row.residual_frac) > _FAR_FRAC]
    report = _report(step_cost, calibration, residuals)
    return FitResult(
        step_cost,
        calibration,
        report.replace(
            source=source,
            starts_from=f"the packaged calibration ({base.source})" if base is not None else "the prior",
            left_out=observed.left_out,
            acceptance=curves,
            notes=tuple(notes),
        ),
    )


def _far_off(row: FitResidual) -> str:
    place = f" ({row.file}:{row.line})" if row.file and row.line else ""
    return (
        f"LOOK: {row.label}{place} took {row.measured_s * 1e3:.4g} ms, the fit says {row.fitted_s * 1e3:.4g} ms: "
        "another machine, model or setting than the row says?"
    )


def _is_sglang(rows: Sequence[Row]) -> bool:
    return all(framework_of(row.get("engine_version") or "sglang") == "sglang" for row in rows)


def _q_len(row: Row) -> float:
    return float(row.get("q_len") or 1)  # type: ignore[arg-type]


def _residuals(step_cost: StepCostFit) -> list[FitResidual]:
    found = []
    for entry in step_cost.rows:
        row = entry.row
        file, line = place_of(row)
        concurrency, q_len = float(row.get("concurrency") or 1), int(_q_len(row))  # type: ignore[arg-type]
        found.append(
            FitResidual(
                label=str(row.get("id") or f"C={concurrency:g} q_len={q_len}"),
                file=file,
                line=line,
                concurrency=concurrency,
                q_len=q_len,
                kind=str(row["kind"]),
                context_tok=float(row.get("context_tok") or 1024),  # type: ignore[arg-type]
                measured_s=float(row["step_s"]),  # type: ignore[arg-type]
                fitted_s=entry.fitted_s,
            )
        )
    return found


def _left_out(
    residuals: list[FitResidual], rows: Sequence[Row], fitted_on: Callable[[Sequence[Row]], StepCostFit]
) -> list[FitResidual]:
    """Each observation predicted from others: from all of them, or with many observations from nine tenths."""
    n = len(rows)
    if n < 2:
        return residuals
    n_parts = n if n <= _MAX_ONE_BY_ONE else _N_PARTS
    for part in range(n_parts):
        out = range(part, n, n_parts)
        answers = fitted_on([row for i, row in enumerate(rows) if i % n_parts != part]).predict([rows[i] for i in out])
        for i, answer in zip(out, answers, strict=True):
            residuals[i] = residuals[i].replace(
                left_out_s=answer.value, left_out_low_s=answer.low, left_out_high_s=answer.high
            )
    return residuals


def _report(step_cost: StepCostFit, calibration: Calibration, residuals: Sequence[FitResidual]) -> FitReport:
    before, after, domain = step_cost.start, calibration.posterior, calibration.domain
    assert before is not None
    before_sd, after_sd = np.sqrt(np.diag(before.covariance)), np.sqrt(np.diag(after.covariance))
    tried = [row for row in residuals if row.left_out_frac is not None]
    return FitReport(
        hardware=calibration.hardware,
        model=calibration.model,
        drafter=calibration.drafter,
        source=calibration.source,
        starts_from="",
        parameters=tuple(
            FitParameter(
                name=parameter.name,
                unit=parameter.unit,
                what=parameter.what,
                before=float(before.mean[i]),
                before_sd=float(before_sd[i]),
                after=float(after.mean[i]),
                after_sd=float(after_sd[i]),
            )
            for i, parameter in enumerate(PARAMETERS)
        ),
        residuals=tuple(residuals),
        residual_sd_frac=after.residual_frac,
        mape=float(np.mean([abs(row.residual_frac) for row in residuals])),
        left_out_mape=float(np.mean([abs(row.left_out_frac or 0.0) for row in tried])) if tried else None,
        left_out_coverage=float(np.mean([bool(row.left_out_inside) for row in tried])) if tried else None,
        n_left_out=len(tried),
        domain=tuple(
            FitSpan(name=name, low=span[0], high=span[1])
            for name, span in (
                ("running requests", domain.running),
                ("q_len", domain.q_len),
                ("mean context_tok", domain.context_tok),
            )
        ),
        kinds=tuple(SPECULATION_KINDS[kind] for kind in sorted(domain.kinds)),
        layouts=tuple(f"tp {tp} ep {ep} attention-dp {dp}" for tp, ep, dp in sorted(domain.layouts)),
    )


def _acceptance(
    rows: Sequence[Row], model: ModelProfile, drafter: DrafterProfile, source: str
) -> tuple[tuple[AcceptPoint, ...], tuple[AcceptFit, ...]]:
    """Accept lengths of drafted rows by traffic (domain and temperature), each checked and fitted.

    Raises:
        InputError: a length above its cap, contradictory lengths, bonus tokens counted in some runs only.
    """
    groups: dict[tuple[str, float | None], dict[tuple[object, ...], tuple[dict[str, object], Row]]] = {}
    for row in rows:
        if row.get("accept_len") in (None, "") or _q_len(row) <= 1:
            continue
        point = _point(row)
        key = (str(point["domain"]), point["temperature"])
        groups.setdefault(key, {}).setdefault(tuple(point.values()), (point, row))  # type: ignore[arg-type]
    points: list[AcceptPoint] = []
    curves: list[AcceptFit] = []
    problems: list[Problem] = []
    for (domain, temperature), found in sorted(groups.items(), key=str):
        given = [point for point, _ in found.values()]
        try:
            curve = fit_acceptance(given, block_size=drafter.block_size)
            assert isinstance(curve, TreeAcceptance)
        except InputError as error:
            problems += [_placed(problem, [row for _, row in found.values()]) for problem in error.problems]
            continue
        fitted = []
        for read in curve.points:
            predict = curve.predict_chain if read.kind == "chain" else partial(curve.predict, topk=read.topk)
            answer = predict(read.budget)
            assert isinstance(answer, Estimate)
            fitted.append(
                AcceptFitPoint(
                    budget=read.budget,
                    kind=read.kind,
                    measured=read.accept_len,
                    fitted=answer.value,
                    low=answer.low,
                    high=answer.high,
                )
            )
            points.append(
                AcceptPoint(
                    target=model.id,
                    kind=read.kind,
                    budget=read.budget,
                    topk=read.topk,
                    accept_len=read.accept_len,
                    domain=read.domain,
                    context_tok=read.context_tok,
                    temperature=temperature or 0.0,
                    rounds=read.rounds,
                    bonus_counted=True if read.bonus_counted is False else read.bonus_counted,
                    source=Source(field="accept_len", kind=SourceKind.MEASURED, ref=source),
                )
            )
        note = None if temperature is not None else "temperature not stated, taken as 0"
        curves.append(AcceptFit(domain=domain, temperature=temperature, points=tuple(fitted), note=note))
    if problems:
        raise InputError(problems)
    return tuple(points), tuple(curves)


def _point(row: Row) -> dict[str, object]:
    """A row's accept length as :func:`fit_acceptance` takes it."""

    def number(name: str) -> float | None:
        value = row.get(name)
        return None if value in (None, "") else float(value)  # type: ignore[arg-type]

    def count(name: str) -> int | None:
        value = number(name)
        return None if value is None else round(value)

    bonus = row.get("bonus_counted")
    return {
        "budget": round(_q_len(row)) - 1,
        "accept_len": number("accept_len"),
        "rounds": count("rounds"),
        "topk": count("topk"),
        "kind": "chain" if row.get("kind") == "chain" else "tree",
        "domain": str(row.get("domain") or "unknown"),
        "context_tok": count("context_tok"),
        "temperature": number("temperature"),
        "bonus_counted": None if bonus in (None, "") else str(bonus).strip().lower() not in _FALSE,
    }


def _placed(problem: Problem, rows: Sequence[Row]) -> Problem:
    """A fault of ``points[k]`` at the file and line of that row; any other at the first one that says."""
    field = problem.field or ""
    index = int(field[len("points[") : field.index("]")]) if field.startswith("points[") else 0
    file, line = place_of(rows[index])
    name = field.rsplit(".", 1)[-1] if "." in field else "accept_len"

    def places(match: re.Match[str]) -> str:
        at = [place_of(rows[int(number)]) for number in re.findall(r"\d+", match[0])]
        return ", ".join(f"{file}:{line}" for file, line in at if file) or match[0]

    message = re.sub(r"points \d+(?:(?:, | and )\d+)*", places, problem.message)
    return replace(problem, message=message, file=file, line=line, field=name)
