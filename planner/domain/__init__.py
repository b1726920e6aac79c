"""Immutable values of the planner. No file is opened, nothing is estimated or decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner._lazy import lazy_door

if TYPE_CHECKING:
    from planner.domain.base import (
        Estimate,
        Provenance,
        Source,
        Sourced,
        SourceKind,
        Value,
    )
    from planner.domain.finding import (
        Finding,
        Fix,
        FixEdit,
        Level,
    )
    from planner.domain.hardware import (
        HardwareProfile,
        LinkKind,
    )
    from planner.domain.launch import (
        ArgValue,
        Candidate,
        Decision,
        LaunchConfig,
        Speculation,
    )
    from planner.domain.limit import (
        QUANTITIES,
        SETTINGS,
        Consequence,
        Evidence,
        Limit,
        LimitScope,
        LimitShape,
        LimitStatus,
    )
    from planner.domain.model import (
        AcceptPoint,
        AttentionKind,
        DrafterProfile,
        ModelProfile,
        WeightDtype,
        bytes_per_param,
    )
    from planner.domain.observation import (
        Metric,
        Observation,
        Outcome,
    )
    from planner.domain.plan import (
        BindingLimit,
        Comparison,
        Conflict,
        Launch,
        Lift,
        Plan,
        PlanStatus,
        Predicted,
        Prediction,
        Refused,
        StepPart,
        Versions,
    )
    from planner.domain.workload import (
        Domain,
        Need,
        Workload,
    )

__getattr__, __dir__ = lazy_door(
    __name__,
    {
        "planner.domain.base": (
            "Estimate",
            "Provenance",
            "Source",
            "Sourced",
            "SourceKind",
            "Value",
        ),
        "planner.domain.finding": (
            "Finding",
            "Fix",
            "FixEdit",
            "Level",
        ),
        "planner.domain.hardware": (
            "HardwareProfile",
            "LinkKind",
        ),
        "planner.domain.launch": (
            "ArgValue",
            "Candidate",
            "Decision",
            "LaunchConfig",
            "Speculation",
        ),
        "planner.domain.limit": (
            "QUANTITIES",
            "SETTINGS",
            "Consequence",
            "Evidence",
            "Limit",
            "LimitScope",
            "LimitShape",
            "LimitStatus",
        ),
        "planner.domain.model": (
            "AcceptPoint",
            "AttentionKind",
            "DrafterProfile",
            "ModelProfile",
            "WeightDtype",
            "bytes_per_param",
        ),
        "planner.domain.observation": (
            "Metric",
            "Observation",
            "Outcome",
        ),
        "planner.domain.plan": (
            "BindingLimit",
            "Comparison",
            "Conflict",
            "Launch",
            "Lift",
            "Plan",
            "PlanStatus",
            "Predicted",
            "Prediction",
            "Refused",
            "StepPart",
            "Versions",
        ),
        "planner.domain.workload": (
            "Domain",
            "Need",
            "Workload",
        ),
    },
)

__all__ = [
    "QUANTITIES",
    "SETTINGS",
    "AcceptPoint",
    "ArgValue",
    "AttentionKind",
    "BindingLimit",
    "Candidate",
    "Comparison",
    "Conflict",
    "Consequence",
    "Decision",
    "Domain",
    "DrafterProfile",
    "Estimate",
    "Evidence",
    "Finding",
    "Fix",
    "FixEdit",
    "HardwareProfile",
    "Launch",
    "LaunchConfig",
    "Level",
    "Lift",
    "Limit",
    "LimitScope",
    "LimitShape",
    "LimitStatus",
    "LinkKind",
    "Metric",
    "ModelProfile",
    "Need",
    "Observation",
    "Outcome",
    "Plan",
    "PlanStatus",
    "Predicted",
    "Prediction",
    "Provenance",
    "Refused",
    "Source",
    "SourceKind",
    "Sourced",
    "Speculation",
    "StepPart",
    "Value",
    "Versions",
    "WeightDtype",
    "Workload",
    "bytes_per_param",
]
