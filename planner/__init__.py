"""Safe SGLang launch configurations for large models with speculative decoding: planned, checked, proved on a server.

>>> import planner
>>> plan = planner.plan(hw="b300", target_c=64)
>>> plan.status.value
'optimal'
>>> plan.effective.verify_rows_per_rank <= 1152
True

Importing this package loads no solver and no fitting library; each function loads what it needs when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner._lazy import lazy_door

if TYPE_CHECKING:
    from planner.api import plan, predict
    from planner.domain import (
        Candidate,
        DrafterProfile,
        Estimate,
        Finding,
        HardwareProfile,
        LaunchConfig,
        Limit,
        ModelProfile,
        Observation,
        Plan,
        PlanStatus,
        Prediction,
        Workload,
    )
    from planner.domain.report import Report
    from planner.engine.resolution import resolve
    from planner.errors import DomainError, EngineRefusal, InputError, MissingDataError, PlannerError, Problem
    from planner.estimate.acceptance import fit_acceptance
    from planner.estimate.step_cost import fit_step_cost
    from planner.review.checking import check
    from planner.search.accuracy import accuracy
    from planner.search.fitting import fit

__getattr__, __dir__ = lazy_door(
    __name__,
    {
        "planner.api": ("plan", "predict"),
        "planner.domain": (
            "Candidate",
            "DrafterProfile",
            "Estimate",
            "Finding",
            "HardwareProfile",
            "LaunchConfig",
            "Limit",
            "ModelProfile",
            "Observation",
            "Plan",
            "PlanStatus",
            "Prediction",
            "Workload",
        ),
        "planner.domain.report": ("Report",),
        "planner.engine.resolution": ("resolve",),
        "planner.errors": ("DomainError", "EngineRefusal", "InputError", "MissingDataError", "PlannerError", "Problem"),
        "planner.estimate.acceptance": ("fit_acceptance",),
        "planner.estimate.step_cost": ("fit_step_cost",),
        "planner.review.checking": ("check",),
        "planner.search.accuracy": ("accuracy",),
        "planner.search.fitting": ("fit",),
    },
)

__all__ = [
    "Candidate",
    "DomainError",
    "DrafterProfile",
    "EngineRefusal",
    "Estimate",
    "Finding",
    "HardwareProfile",
    "InputError",
    "LaunchConfig",
    "Limit",
    "MissingDataError",
    "ModelProfile",
    "Observation",
    "Plan",
    "PlanStatus",
    "PlannerError",
    "Prediction",
    "Problem",
    "Report",
    "Workload",
    "accuracy",
    "check",
    "fit",
    "fit_acceptance",
    "fit_step_cost",
    "plan",
    "predict",
    "resolve",
]
