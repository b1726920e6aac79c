"""Short cuts that make the command fast give what the long way gives."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from click.testing import CliRunner

from planner.cli import cli
from planner.data import load_drafter, load_hardware, load_model
from planner.domain import Candidate, Domain, Speculation
from planner.engine.emit import emit_launch, emit_launches
from planner.estimate.acceptance import TreeAcceptance, fit_acceptance
from planner.search.masks import Constraint, Constraints


def test_replicas_resolved_once_are_launched_as_one_by_one() -> None:
    candidate = Candidate(
        tp_size=4, replicas=2, max_running_requests=32, cuda_graph_max_bs=32, attention_backend="triton",
        mem_fraction_static=0.85, speculation=Speculation.CHAIN, budget=4, topk=1, q_len=5,
    )  # fmt: skip
    given = {
        "hardware": load_hardware("b300"),
        "model": load_model("kimi-k2.6"),
        "drafter": load_drafter("kimi-k2.6-dflash"),
        "context_length": 8192,
        "engine_version": "0.5.23",
    }
    assert emit_launches(candidate, **given) == tuple(
        emit_launch(candidate, replica=replica, **given) for replica in range(2)
    )


def test_the_mean_alone_is_the_value_of_the_band() -> None:
    fitted = fit_acceptance([(8, 4.5)], 16)
    assert isinstance(fitted, TreeAcceptance)
    curve = fitted.at(domain=Domain.CHAT, temperature=0.5)
    budgets = np.array([0, 1, 8, 30, 64])
    np.testing.assert_array_equal(curve.predict_mean(budgets, topk=4), curve.predict_band(budgets, topk=4).value)


@pytest.mark.parametrize("without", [(), ("a",), ("b", "c")])
def test_masks_are_the_product_of_their_constraints(without: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    shapes = {"a": (5, 1, 1), "b": (5, 3, 1), "c": (5, 1, 2), "d": (5, 3, 2), "e": (5, 3, 1)}
    items = tuple(Constraint(id=id_, kind="limit", text="", allowed=rng.random(s) < 0.7) for id_, s in shapes.items())
    constraints = Constraints(items, (5, 3, 2))
    wanted = np.ones((5, 3, 2), dtype=bool)
    for item in items:
        if item.id not in without:
            wanted &= item.allowed
    for _ in range(2):
        np.testing.assert_array_equal(constraints.mask(without=without), wanted)


def test_garbage_collection_is_on_again_after_a_plan() -> None:
    assert gc.isenabled()
    done = CliRunner().invoke(cli, ["--hw", "h200", "--target-c", "8", "--format", "argv"])
    assert done.exit_code == 0
    assert gc.isenabled()
