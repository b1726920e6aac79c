"""``fit_step_cost``: from measured steps (or none) to a model that predicts other steps of the same deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.domain import AcceptPoint, DrafterProfile, Estimate, HardwareProfile, ModelProfile, Provenance
from planner.errors import DomainError, InputError, Problem, nearest_hint
from planner.estimate.step_cost.batch import ATTENTION_BACKENDS, SPECULATION_KINDS, StepBatch
from planner.estimate.step_cost.calibration import Calibration, CalibrationRow
from planner.estimate.step_cost.default import (
    base_posterior,
    moe_doubt_after,
    uncalibrated_model,
    updated_posterior,
)
from planner.estimate.step_cost.features import build_features
from planner.estimate.step_cost.fit import fit_posterior
from planner.estimate.step_cost.kernels import KernelTable
from planner.estimate.step_cost.model import StepCostModel, StepDomain
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, ParameterPosterior
from planner.estimate.step_cost.rows import RowGroup, place_of, read_rows, row_name

__all__ = ["Row", "StepCostFit", "fit_step_cost"]

Row = Mapping[str, object]
"""One measurement or question; fields and defaults: :data:`planner.estimate.step_cost.rows.ROW_DEFAULTS`."""

_UNITS_RATIO = 100.0
"""A measurement this many times the prediction is taken for one in ms."""
_INSIST = "units_checked=True (--units-checked)"
_CONTRADICTION_FRAC = 0.25
"""Repeats of one configuration that differ by more cannot be one deployment (run-to-run spread on record: 2 to 6 %)."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What picks a kernel cost: framework, model (with its weight format) and the drafter that runs."""

    framework: str
    model: ModelProfile
    drafter: DrafterProfile | None


@dataclass(frozen=True, slots=True, eq=False)
class StepCostFit:
    """Fitted step cost of one system and model. Without observations: tables, data sheet and prior."""

    hardware: HardwareProfile
    model: ModelProfile
    drafter: DrafterProfile | None
    posterior: ParameterPosterior | None
    """None: nothing was fitted, each framework keeps its prior."""
    domain: StepDomain | None
    prior: ParameterPosterior | None = None
    """Parameters that a prediction without a fit starts from; None: the packaged ones."""
    table: KernelTable | None = None
    """Kernel table in place of the packaged one."""
    rows: tuple[CalibrationRow, ...] = ()
    start: ParameterPosterior | None = None
    """Parameters that the fit started from; None: nothing was fitted."""

    def step_model(self, *, framework: str = "sglang") -> StepCostModel:
        """The vectorised model behind the fit, for the profile's own weight format."""
        return self._model(_Kind(framework, self.model, self.drafter))

    def predict(self, rows: Sequence[Row], *, outside: str = "mark") -> list[Estimate]:
        """Seconds of one step for each row, with a 90 % interval.

        Args:
            rows: questions; ``step_s`` is ignored.
            outside: ``mark`` (default) widens the interval of a row outside the observations' range and marks it
                extrapolated; ``refuse`` raises.

        Raises:
            InputError: faults in the rows, all at once.
            DomainError: a row lies outside the observations by more than a factor of two and ``outside`` is ``refuse``.
        """
        if outside not in ("mark", "refuse"):
            raise InputError(f"outside must be mark or refuse, got {outside!r}")
        questions = [{key: value for key, value in row.items() if key != "step_s"} for row in _listed(rows)]
        answers: dict[int, Estimate] = {}
        drafter = self.drafter or _named_drafter(questions, self.model)
        for group in read_rows(questions, hardware=self.hardware, model=self.model, drafter=drafter):
            model = self._model(_Kind(group.framework, group.model, drafter if group.drafted else None))
            columns = model.predict_columns(group.batch)
            far = self.domain.outside(group.batch) if self.domain is not None else np.zeros(group.batch.n_rows)
            for k, position in enumerate(group.index):
                unpriced = _unpriced(questions[position])
                note = "; ".join(part for part in (self._note(group, k, far[k]), unpriced) if part)
                if far[k] > 1.0 and outside == "refuse":
                    raise DomainError(f"row {position}: {note}", "measure there, or ask with outside='mark'")
                answers[position] = Estimate(
                    value=float(columns.value_s[k]),
                    low=float(columns.low_s[k]),
                    high=float(columns.high_s[k]),
                    provenance=self._provenance(model),
                    extrapolated=bool(columns.extrapolated[k]) or bool(unpriced),
                    note=note or "; ".join(columns.notes) or None,
                )
        return [answers[position] for position in sorted(answers)]

    def calibration(self, source: str, *, accept_points: Sequence[AcceptPoint] = ()) -> Calibration:
        """As a file's content, with the accept lengths of the same runs.

        Raises:
            InputError: nothing was fitted.
        """
        if self.posterior is None or self.domain is None:
            raise InputError("a calibration needs at least one observation")
        return Calibration(
            hardware=self.hardware.id,
            model=self.model.id,
            drafter=self.drafter.id if self.drafter is not None else None,
            source=source,
            posterior=self.posterior,
            domain=self.domain,
            rows=self.rows,
            accept_points=tuple(accept_points),
        )

    def _model(self, group: _Kind) -> StepCostModel:
        base = base_posterior(group.framework, self.prior)
        start = uncalibrated_model(
            self.hardware, group.model, group.drafter, framework=group.framework, posterior=base, table=self.table
        )
        if self.posterior is None:
            return start
        return StepCostModel(
            start.costs,
            self.posterior,
            domain=self.domain,
            moe_doubt=moe_doubt_after(start.costs, self.posterior, group.framework),
            notes=(f"fitted on {len(self.rows)} observations",),
        )

    def _provenance(self, model: StepCostModel) -> Provenance:
        if self.posterior is not None:
            return Provenance.FITTED
        return Provenance.TABLE if model.costs.table is not None else Provenance.DATASHEET

    def _note(self, group: RowGroup, k: int, far: float) -> str:
        if self.domain is None or far <= 0:
            return ""
        parts = []
        for name, label in (("running", "concurrency"), ("q_len", "q_len"), ("context_tok", "mean context")):
            low, high = getattr(self.domain, name)
            value = float(getattr(group.batch, name)[k])
            if not low <= value <= high:
                parts.append(f"{label} {value:g} is outside the {low:g} to {high:g} measured")
        return "; ".join(parts)


def _unpriced(row: Row) -> str:
    """A backend that the models do not know: its cost is a guess."""
    backend = str(row.get("attention_backend") or "").strip()
    if backend.lower() in ("", "nan", *ATTENTION_BACKENDS):
        return ""
    return f"attention backend {backend!r} is priced as the default one, nothing is known of it"


def fit_step_cost(
    rows: Sequence[Row] = (),
    *,
    hw: str | Path | HardwareProfile,
    model: str | Path | ModelProfile,
    drafter: str | Path | DrafterProfile | None = None,
    free: Sequence[str] | None = None,
    units_checked: bool = False,
    noise_frac: float = 0.03,
    prior: ParameterPosterior | None = None,
    table: KernelTable | None = None,
    base: Calibration | None = None,
) -> StepCostFit:
    """Fit the step cost of one system and model to measured steps.

    Every parameter has a prior from independent runs, so that one or two observations are enough to correct it; with
    none, tables, data sheet and prior speak alone.

    Args:
        rows: mappings with ``step_s`` in seconds (an autoregressive TPOT is a step at q_len 1); what is absent takes
            the default of :data:`planner.estimate.step_cost.rows.ROW_DEFAULTS`.
        hw: id, profile or TOML file.
        model: id, profile, or a folder with config.json.
        drafter: id or profile of the draft model that the rows' ``draft`` names.
        free: names of parameters to fit (:data:`planner.estimate.step_cost.parameters.PARAMETER_NAMES`); all by
            default, each held by its prior. Named ones are fitted without the help of the others.
        units_checked: the steps really are that long or short.
        noise_frac: expected relative error of a measurement about the model.
        prior: fitted parameters of other deployments to start from; the packaged ones by default.
        table: kernel table in place of the packaged one (:func:`planner.estimate.step_cost.aic.build_kernel_table`).
        base: calibration of the same system and model that the rows update, in place of ``prior``; what it spans
            counts as measured.

    Raises:
        InputError: faults in rows; duplicated or contradictory observations; steps that look like milliseconds; fewer
            observations than ``free`` parameters.
        DomainError: ``base`` was made on another system or model.
    """
    from planner.data.load import load_drafter, load_hardware, load_model

    hardware, target = load_hardware(hw), load_model(model)
    draft = load_drafter(drafter) if drafter is not None else None
    listed = _listed(rows)
    draft = draft or _named_drafter(listed, target)
    movable = _movable(free, len(listed))
    if not listed:
        return StepCostFit(hardware, target, draft, None, None, prior, table)
    groups = read_rows(listed, hardware=hardware, model=target, drafter=draft, need_step=True)
    _check_repeats(listed, groups)
    if base is not None:
        base.require(hardware.id, target.id)
    start = updated_posterior(base) if base is not None else base_posterior(_main_framework(groups), prior)
    models = [
        uncalibrated_model(
            hardware,
            g.model,
            draft if g.drafted else None,
            framework=g.framework,
            posterior=start,
            table=table,
        )
        for g in groups
    ]
    if not units_checked:
        _check_units(listed, groups, models)
    features = [build_features(m.costs, g.batch) for m, g in zip(models, groups, strict=True)]
    posterior = fit_posterior(features, [g.step_s for g in groups], start, noise_frac=noise_frac, free=movable)
    fitted: dict[int, float] = {}
    kinds: dict[int, int] = {}
    for m, g in zip(models, groups, strict=True):
        value = StepCostModel(m.costs, posterior).predict_columns(g.batch).value_s
        fitted |= dict(zip(g.index, value.tolist(), strict=True))
        kinds |= dict(zip(g.index, g.batch.speculation.astype(int).tolist(), strict=True))
    domain = StepDomain.of([group.batch for group in groups])
    return StepCostFit(
        hardware=hardware,
        model=target,
        drafter=draft,
        posterior=posterior,
        domain=domain if base is None else domain.joined(base.domain),
        prior=prior,
        table=table,
        rows=tuple(
            CalibrationRow({**row, "kind": SPECULATION_KINDS[kinds[i]]}, fitted[i]) for i, row in enumerate(listed)
        ),
        start=start,
    )


def _listed(rows: Sequence[Row]) -> list[Row]:
    if isinstance(rows, (str, bytes, Mapping)):
        raise InputError(f"rows must be a sequence of mappings, got one {type(rows).__name__}")
    return list(rows)


def _named_drafter(rows: Sequence[Row], model: ModelProfile) -> DrafterProfile | None:
    """The packaged drafter that the rows name, if it is one and the same; other drafters cost host terms alone.

    An alias counts for the targets of its drafter only: ``dflash`` on another model is another drafter.
    """
    from planner.data.load import load_drafter, packaged_ids

    named = {str(row.get("draft")).strip() for row in rows if isinstance(row, Mapping)}
    found = []
    for drafter in (load_drafter(id_) for id_ in packaged_ids("drafter")):
        names = {drafter.id}
        if model.id in drafter.targets:
            names |= {drafter.model_path, *drafter.aliases}
        if names & named:
            found.append(drafter)
    return found[0] if len(found) == 1 else None


def _movable(free: Sequence[str] | None, n_rows: int) -> NDArray[np.bool_] | None:
    if free is None:
        return None
    unknown = [name for name in free if name not in PARAMETER_NAMES]
    if unknown:
        raise InputError(
            [
                Problem(f"no parameter {name!r}", field="free", hint=nearest_hint(name, PARAMETER_NAMES))
                for name in unknown
            ]
        )
    if n_rows < len(set(free)):
        raise InputError(
            f"{n_rows} observation(s) cannot fit {len(set(free))} parameters ({', '.join(free)})",
            hint=f"measure at least {len(set(free))} different configurations, or free fewer parameters",
        )
    return np.array([name in free for name in PARAMETER_NAMES])


def _main_framework(groups: Sequence[RowGroup]) -> str:
    """The framework that most rows ran."""
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.framework] = counts.get(group.framework, 0) + len(group.index)
    return max(sorted(counts), key=lambda name: counts[name])


def _check_repeats(rows: Sequence[Row], groups: Sequence[RowGroup]) -> None:
    """Refuse an observation given twice, and repeats that contradict each other."""
    problems: list[Problem] = []
    for group in groups:
        names = [field.name for field in fields(StepBatch)]
        keys = np.column_stack([np.asarray(getattr(group.batch, name), dtype=float) for name in names])
        seen: dict[tuple[object, ...], list[int]] = {}
        for k, position in enumerate(group.index):
            # Rows that say what tells them apart are not repeats, though the model reads no more of it than a kind.
            told = (str(rows[position].get(name)) for name in ("draft", "engine_version", "attention_backend"))
            seen.setdefault((*keys[k], *told), []).append(k)
        for members in seen.values():
            problems += _repeat_problems(members, group, rows)
    if problems:
        raise InputError(problems)


def _repeat_problems(members: list[int], group: RowGroup, rows: Sequence[Row]) -> list[Problem]:
    if len(members) < 2:
        return []
    steps = group.step_s[members]
    file, line = place_of(rows[group.index[members[-1]]])
    where = " and ".join(_whereabouts(rows[group.index[k]], group.index[k]) for k in members)
    where = where if file is not None else f"rows {where}"
    if len(set(steps.tolist())) < len(members):
        shown = f" (step_s {steps[0]:.6g})" if file is not None else ""
        text = f"{where} are one observation given twice{shown}"
        return [Problem(text, file=file, line=line, field="step_s", value=float(steps[0]), hint="keep one")]
    if steps.max() > (1 + _CONTRADICTION_FRAC) * steps.min():
        text = f"{where} are one configuration and contradict each other: {steps.min():.4g} s and {steps.max():.4g} s"
        return [
            Problem(
                text,
                file=file,
                line=line,
                field="step_s",
                value=float(steps[-1]),
                hint="they differ in something the rows do not say, or one is wrong; drop it or name the difference",
            )
        ]
    return []


def _whereabouts(row: Row, position: int) -> str:
    """A row among several: position and id, or file and line."""
    file, line = place_of(row)
    if file is None:
        return f"{position}" + (f" ({row['id']})" if row.get("id") else "")
    return f"{file}:{line}" if line is not None else f"{file} {row.get('id') or ''}".rstrip()


def _check_units(rows: Sequence[Row], groups: Sequence[RowGroup], models: Sequence[StepCostModel]) -> None:
    """Ask when a step is a hundred times what tables and prior say: most often it is in ms."""
    problems: list[Problem] = []
    for group, model in zip(groups, models, strict=True):
        expected = model.predict_columns(group.batch).value_s
        for k, position in enumerate(group.index):
            measured = float(group.step_s[k])
            if measured > _UNITS_RATIO * expected[k]:
                hint = f"is it in ms ({measured / 1e3:.4g} s)? divide it, or pass {_INSIST}"
            elif measured * _UNITS_RATIO < expected[k]:
                hint = f"is it per token of a batch, or tok/s turned round? correct it, or pass {_INSIST}"
            else:
                continue
            name, (file, line) = row_name(rows[position], position), place_of(rows[position])
            text = f"{name}: a step of {measured:g} s, where about {expected[k]:.3g} s is expected"
            problems.append(Problem(text, file=file, line=line, field="step_s", value=measured, hint=hint))
    if problems:
        raise InputError(problems)
