"""The models that a search runs on: the drafter's acceptance under the workload, the step cost of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.domain import AcceptPoint, Domain, DrafterProfile, HardwareProfile, ModelProfile, Provenance, Workload
from planner.errors import MissingDataError
from planner.estimate.acceptance.fit import fit_acceptance
from planner.estimate.acceptance.tree import TreeAcceptance
from planner.estimate.order import distinct
from planner.estimate.step_cost.default import default_model
from planner.estimate.step_cost.model import StepCostModel
from planner.search.score import AcceptColumns, Models

if TYPE_CHECKING:
    from planner.search.calibrations import OwnCalibration

__all__ = ["DrafterAcceptance", "NoDraft", "load_models", "points_for"]

Floats = NDArray[np.float64]

OTHER_TRAFFIC_FRAC = 0.25
"""Share of draws in which traffic of unknown kind is taken for chat, the kind with the lowest accept lengths in public
data (DDTree, arXiv:2604.12989, Table 1: Alpaca against MATH-500). Moves the lower end of the interval, not its
centre."""


@record(eq=False)
class NoDraft:
    """No drafter: every row commits one token a step."""

    note: str = "one token a step without speculation"

    def ground(self, speculation: int, budget: int, topk: int) -> Provenance:
        return Provenance.DERIVED

    def columns(self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike) -> AcceptColumns:
        one = np.ones(np.shape(np.asarray(budget)))
        return AcceptColumns(one, one, one)

    def sample(
        self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike, *, n_samples: int, seed: int
    ) -> Floats:
        return np.ones((n_samples, np.asarray(budget).size))


@record(eq=False)
class DrafterAcceptance:
    """Accept length of off, chain and tree rows from one fit, under one workload."""

    curve: TreeAcceptance
    pessimist: TreeAcceptance | None
    """The curve under chat, where the traffic is not known."""
    measured: tuple[AcceptPoint, ...]
    """Points that hold for this workload as they stand."""
    note: str

    def ground(self, speculation: int, budget: int, topk: int) -> Provenance:
        """``measured`` for a tree that is on record with this budget and width, ``fitted`` for any other draft."""
        if not speculation:
            return Provenance.DERIVED
        kind = "tree" if speculation == 2 else "chain"
        on_record = any(
            (point.kind, point.budget) == (kind, budget) and point.topk in (None, topk) for point in self.measured
        )
        return Provenance.MEASURED if on_record else Provenance.FITTED

    def columns(self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike) -> AcceptColumns:
        """Value and 90 % interval for rows ``(n,)``; off rows are exactly 1."""
        n = np.asarray(budget).size
        value, low, high = np.ones(n), np.ones(n), np.ones(n)
        for where, inverse, budgets, width in _groups(speculation, budget, topk):
            band = self.curve.predict_band(budgets, topk=width)
            value[where], high[where] = band.value[inverse], band.high[inverse]
            bottom = band.low
            if self.pessimist is not None:
                bottom = np.minimum(bottom, self.pessimist.predict_mean(budgets, topk=width))
            low[where] = bottom[inverse]
        return AcceptColumns(value, low, high)

    def sample(
        self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike, *, n_samples: int, seed: int
    ) -> Floats:
        """Joint draws ``(n_samples, n)``: every row of a draw comes from one curve."""
        draws = np.ones((n_samples, np.asarray(budget).size))
        other = np.random.default_rng(seed + 1).random(n_samples) < OTHER_TRAFFIC_FRAC
        for where, inverse, budgets, width in _groups(speculation, budget, topk):
            found = self.curve.sample(budgets, n_samples, seed, topk=width)
            if self.pessimist is not None:
                found = np.where(other[:, None], self.pessimist.sample(budgets, n_samples, seed, topk=width), found)
            draws[:, where] = found[:, inverse]
        return draws


Group = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]


def _groups(speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike) -> Iterator[Group]:
    """Drafted rows by width (1 for chains): row indices, index into the distinct budgets, those budgets, width."""
    codes, budgets, widths = (np.asarray(values, dtype=np.int64).reshape(-1) for values in (speculation, budget, topk))
    for width in sorted(set(widths[codes > 0].tolist())):
        where = np.flatnonzero((codes > 0) & (widths == width))
        found, inverse = distinct(budgets[where])
        yield where, inverse, found, width


def points_for(
    drafter: DrafterProfile, model: ModelProfile, workload: Workload, calibration: OwnCalibration | None = None
) -> tuple[AcceptPoint, ...]:
    """Measured points of a drafter on a target: the calibration's where it has some, else the profile's, or those on a
    target it was trained for when there are none."""
    if calibration is not None:
        from planner.search.calibrations import accept_points_of

        measured = accept_points_of(calibration, drafter, model, workload)
        if measured:
            return measured
    own = tuple(point for point in drafter.points if point.target == model.id)
    if own:
        return own
    return tuple(point for point in drafter.points if model.id in drafter.targets)


def drafter_acceptance(
    drafter: DrafterProfile, model: ModelProfile, workload: Workload, calibration: OwnCalibration | None = None
) -> DrafterAcceptance:
    """The drafter's curve under the workload.

    Raises:
        MissingDataError: no accept length of this drafter on this target is on record.
    """
    points = points_for(drafter, model, workload, calibration)
    if not points:
        raise MissingDataError(
            f"no accept length of drafter {drafter.id} on {model.id} is on record",
            "measure one tree budget (sglang's accept length at full batch) and add it to the drafter profile as "
            "[[points]], or plan without speculation (--drafter none)",
        )
    fitted = fit_acceptance(points, block_size=drafter.block_size, kind="tree")
    assert isinstance(fitted, TreeAcceptance)
    unknown = workload.domain is Domain.UNKNOWN
    curve = fitted.at(
        domain=None if unknown else workload.domain,
        temperature=workload.temperature,
        context_tok=workload.mean_context_tok,
        train_context_tok=drafter.train_context_tok,
    )
    pessimist = None
    if unknown and any(point.domain not in (Domain.UNKNOWN.value, Domain.CHAT.value) for point in points):
        pessimist = fitted.at(
            domain=Domain.CHAT,
            temperature=workload.temperature,
            context_tok=workload.mean_context_tok,
            train_context_tok=drafter.train_context_tok,
        )
    refs = ", ".join(dict.fromkeys(point.source.ref.removeprefix("field note ") for point in points))
    return DrafterAcceptance(
        curve=curve,
        pessimist=pessimist,
        measured=points if curve is fitted else (),
        note=refs,
    )


def load_models(
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None,
    workload: Workload,
    calibration: OwnCalibration | None = None,
) -> Models:
    """Models for one question; a calibration of the user's own stands in for the packaged one.

    Raises:
        MissingDataError: nothing was measured on this hardware, or the drafter has no accept length on this model.
    """
    if not hardware.predictions and calibration is None:
        raise MissingDataError(
            f"no prediction for {hardware.id}: nothing was measured on it and it has no kernel tables",
            "run one launch with `plan-config bench` and fit it with `plan-config fit`; `check` works without",
        )
    acceptance = drafter_acceptance(drafter, model, workload, calibration) if drafter is not None else NoDraft()
    if calibration is None:
        step: StepCostModel = default_model(hardware, model, drafter)
    else:
        from planner.search.calibrations import step_model_of

        step = step_model_of(calibration, hardware, model, drafter)
    return Models(hardware=hardware, model=model, drafter=drafter, workload=workload, acceptance=acceptance, step=step)
