"""A calibration file for a plan: read, checked against the machine and model, named in the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.domain import AcceptPoint, DrafterProfile, HardwareProfile, ModelProfile, Workload
from planner.errors import DomainError, InputError, Problem
from planner.estimate.step_cost.calibration import Calibration, read_calibration
from planner.estimate.step_cost.default import calibrated_model
from planner.estimate.step_cost.model import StepCostModel

__all__ = ["OwnCalibration", "accept_points_of", "load_calibration", "step_model_of"]

_FIELD = "--calibration"


@dataclass(frozen=True, slots=True, eq=False)
class OwnCalibration:
    """A calibration of the user's own, with the name that an answer gives it."""

    name: str
    """File name and the start of its digest."""
    value: Calibration


def load_calibration(path: str | Path, hardware: HardwareProfile, model: ModelProfile) -> OwnCalibration:
    """Read a file of ``plan-config fit``.

    Raises:
        InputError: it cannot be read, is no calibration, or was made on another machine or model.
    """
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "write one with plan-config fit"
        text_ = f"not UTF-8 text (byte {error.start})"
        raise InputError([Problem(text_, file=str(path), field=_FIELD, hint=hint)]) from None
    except OSError as error:
        raise InputError(
            [Problem(error.strerror or str(error), file=str(path), field=_FIELD, hint="check the path")]
        ) from None
    value = read_calibration(text, name=str(path))
    try:
        value.require(hardware.id, model.id)
    except DomainError as error:
        raise InputError([Problem(error.message, file=str(path), field=_FIELD, hint=error.hint)]) from None
    digest = hashlib.sha256(content).hexdigest()[:12]
    return OwnCalibration(f"{Path(path).name} (sha256 {digest})", value)


def step_model_of(
    own: OwnCalibration, hardware: HardwareProfile, model: ModelProfile, drafter: DrafterProfile | None
) -> StepCostModel:
    """The step cost of a calibration file, with a note of where it was measured."""
    built = calibrated_model(own.value, hardware, model, drafter)
    domain = own.value.domain
    spans = (("running requests", domain.running), ("q_len", domain.q_len), ("mean context", domain.context_tok))
    words = ", ".join(f"{name} {low:g}" + (f" to {high:g}" if high != low else "") for name, (low, high) in spans)
    notes = [
        f"{own.name} measured {words}: outside a figure is wider, by more than a factor of two marked extrapolated"
    ]
    if drafter is not None and own.value.drafter not in (None, drafter.id):
        notes.append(f"{own.name} was fitted with drafter {own.value.drafter}, the plan drafts with {drafter.id}")
    return built.with_notes(*notes)


def accept_points_of(
    own: OwnCalibration, drafter: DrafterProfile, model: ModelProfile, workload: Workload
) -> tuple[AcceptPoint, ...]:
    """Accept lengths of the file for this drafter and model: those of the workload's traffic, else of the traffic that
    has most points. Empty: the drafter profile's own count."""
    if own.value.drafter != drafter.id:
        return ()
    traffics: dict[tuple[str, float], list[AcceptPoint]] = {}
    for point in own.value.accept_points:
        if point.target == model.id:
            traffics.setdefault((point.domain, point.temperature), []).append(point)
    if not traffics:
        return ()

    def nearness(item: tuple[tuple[str, float], Sequence[AcceptPoint]]) -> tuple[bool, float, int]:
        (domain, temperature), points = item
        return domain == workload.domain.value, -abs(temperature - workload.temperature), len(points)

    return tuple(max(sorted(traffics.items()), key=nearness)[1])
