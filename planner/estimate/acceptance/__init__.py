"""Acceptance: how many tokens a verify step commits, for any draft budget, from one or a few measurements.

Accept lengths include the bonus token; budgets exclude the root (a verify pass has budget + 1 rows).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner._lazy import lazy_door

if TYPE_CHECKING:
    from planner.estimate.acceptance.builder import (
        DraftTree,
        best_first_tree,
    )
    from planner.estimate.acceptance.chain import ChainAcceptance
    from planner.estimate.acceptance.conditions import (
        Shift,
        context_factor,
        temperature_factor,
    )
    from planner.estimate.acceptance.family import (
        MAX_BUDGET,
        TreeShape,
    )
    from planner.estimate.acceptance.fit import fit_acceptance
    from planner.estimate.acceptance.interval import Band
    from planner.estimate.acceptance.points import CurvePoint
    from planner.estimate.acceptance.rounds import (
        RoundsAcceptance,
        acceptance_from_rounds,
        calibrate_depths,
    )
    from planner.estimate.acceptance.sequoia import (
        StaticTree,
        optimal_static_tree,
    )
    from planner.estimate.acceptance.tree import TreeAcceptance

__getattr__, __dir__ = lazy_door(
    __name__,
    {
        "planner.estimate.acceptance.builder": (
            "DraftTree",
            "best_first_tree",
        ),
        "planner.estimate.acceptance.chain": ("ChainAcceptance",),
        "planner.estimate.acceptance.conditions": (
            "Shift",
            "context_factor",
            "temperature_factor",
        ),
        "planner.estimate.acceptance.family": (
            "MAX_BUDGET",
            "TreeShape",
        ),
        "planner.estimate.acceptance.fit": ("fit_acceptance",),
        "planner.estimate.acceptance.interval": ("Band",),
        "planner.estimate.acceptance.points": ("CurvePoint",),
        "planner.estimate.acceptance.rounds": (
            "RoundsAcceptance",
            "acceptance_from_rounds",
            "calibrate_depths",
        ),
        "planner.estimate.acceptance.sequoia": (
            "StaticTree",
            "optimal_static_tree",
        ),
        "planner.estimate.acceptance.tree": ("TreeAcceptance",),
    },
)

__all__ = [
    "MAX_BUDGET",
    "Band",
    "ChainAcceptance",
    "CurvePoint",
    "DraftTree",
    "RoundsAcceptance",
    "Shift",
    "StaticTree",
    "TreeAcceptance",
    "TreeShape",
    "acceptance_from_rounds",
    "best_first_tree",
    "calibrate_depths",
    "context_factor",
    "fit_acceptance",
    "optimal_static_tree",
    "temperature_factor",
]
