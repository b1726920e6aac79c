"""An alternative is called by what it is: one with graphs was once listed as ``graphs off``."""

from __future__ import annotations

import pytest

import planner


@pytest.mark.parametrize("target_c", [64, 129])
def test_alternatives_are_called_by_what_they_are(target_c: int) -> None:
    plan = planner.plan(hw="b300", target_c=target_c)
    seen = {other.label: other.candidate for other in (*plan.ties, *plan.runners_up)}
    for label, candidate in seen.items():
        if label in ("graphs on", "graphs off"):
            assert candidate.cuda_graph is (label == "graphs on")
    assert seen
