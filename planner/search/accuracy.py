"""``accuracy``: the models on data that they did not see."""

from __future__ import annotations

from planner.domain.fitting import AccuracyRow

__all__ = ["accuracy"]


def accuracy() -> list[AccuracyRow]:
    """Every leave-out figure, computed now from the measurements that ship (about ten seconds)."""
    from planner.estimate.acceptance.evaluate import evaluate_acceptance
    from planner.estimate.step_cost.evaluate import evaluate_step_cost

    return [*evaluate_acceptance(), *evaluate_step_cost()]
