"""Step cost: seconds of one decode or verify step, from kernel tables, data sheet and a few fitted terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner._lazy import lazy_door

if TYPE_CHECKING:
    from planner.estimate.step_cost.api import (
        Row,
        StepCostFit,
        fit_step_cost,
    )
    from planner.estimate.step_cost.batch import (
        ATTENTION_BACKENDS,
        SPECULATION_KINDS,
        StepBatch,
        StepColumns,
        attention_backend_code,
    )
    from planner.estimate.step_cost.calibration import (
        Calibration,
        CalibrationRow,
        read_calibration,
        report_lines,
        write_calibration,
    )
    from planner.estimate.step_cost.default import (
        calibrated_model,
        default_model,
    )
    from planner.estimate.step_cost.model import (
        StepCostModel,
        StepDomain,
    )

__getattr__, __dir__ = lazy_door(
    __name__,
    {
        "planner.estimate.step_cost.api": (
            "Row",
            "StepCostFit",
            "fit_step_cost",
        ),
        "planner.estimate.step_cost.batch": (
            "ATTENTION_BACKENDS",
            "SPECULATION_KINDS",
            "StepBatch",
            "StepColumns",
            "attention_backend_code",
        ),
        "planner.estimate.step_cost.calibration": (
            "Calibration",
            "CalibrationRow",
            "read_calibration",
            "report_lines",
            "write_calibration",
        ),
        "planner.estimate.step_cost.default": (
            "calibrated_model",
            "default_model",
        ),
        "planner.estimate.step_cost.model": (
            "StepCostModel",
            "StepDomain",
        ),
    },
)

__all__ = [
    "ATTENTION_BACKENDS",
    "SPECULATION_KINDS",
    "Calibration",
    "CalibrationRow",
    "Row",
    "StepBatch",
    "StepColumns",
    "StepCostFit",
    "StepCostModel",
    "StepDomain",
    "attention_backend_code",
    "calibrated_model",
    "default_model",
    "fit_step_cost",
    "read_calibration",
    "report_lines",
    "write_calibration",
]
