"""Leave-out goals, from the observations that ship, and the crossovers that a planner must get right."""

from __future__ import annotations

import numpy as np
import pytest

from planner.estimate.step_cost import fit_step_cost
from planner.estimate.step_cost.evaluate import evaluate_step_cost
from planner.estimate.step_cost.observations import (
    EXCLUDED,
    autoregressive_rows,
    excluded,
    quoted_model,
    round_rows,
    tpot_rows,
)

ROWS = evaluate_step_cost()
TREE_ACCEPT_LEN, CHAIN_ACCEPT_LEN = 8.71, 6.59
"""Qwen3-4B, budget 64 against a chain of 16 (diffusion-sparked-tree, same page as the round times)."""


@pytest.mark.parametrize("row", [row for row in ROWS if row.goal], ids=lambda row: row.group)
def test_goals_are_met(row):
    assert row.met, f"{row.group}: MAPE {row.mape}, goal {row.goal}"
    assert row.coverage is None or row.coverage >= 0.86 or row.n < 10


def test_every_goal_stands_in_the_table_with_and_without_the_excluded_rows():
    groups = [row.group for row in ROWS]
    for family in ("Blackwell", "Hopper", "lowest and highest C"):
        assert sum(family in group for group in groups) == 2
    assert all(part in ROWS[0].note for part, _ in EXCLUDED)


def test_exclusions_are_the_named_rows_and_no_others():
    ids = [str(row["id"]) for system in ("b200", "h200") for row in tpot_rows(system, with_excluded=True)]
    assert len(ids) == 71
    out = [name for name in ids if excluded(name)]
    assert len(out) == 16
    assert sum("cfg635" in name for name in out) == 15


def corner_fit():
    rows = round_rows()
    corners = [r for r in rows if r["q_len"] in (17, 129) and r["concurrency"] in (1, 32)]
    return fit_step_cost(corners, hw="h100", model=quoted_model("qwen3-4b"))


def chain_fit():
    """A chain of 16 with its drafter on the same host: 9.82 ms at C = 1 and 23.87 ms at C = 32 (same page)."""
    row = {"tp_size": 1, "q_len": 17, "kind": "chain", "overlap": False}
    points = [{**row, "concurrency": 1, "step_s": 9.82e-3}, {**row, "concurrency": 32, "step_s": 23.87e-3}]
    return fit_step_cost(points, hw="h100", model=quoted_model("qwen3-4b"))


def step_s(fit, kind, q_len, concurrency):
    row = {"tp_size": 1, "kind": kind, "q_len": q_len, "concurrency": concurrency, "overlap": False}
    return fit.predict([row])[0].value


def test_on_a_dense_model_the_tree_loses_to_the_chain_between_4_and_8_clients():
    tree, chain = corner_fit(), chain_fit()
    gain = {
        c: TREE_ACCEPT_LEN / step_s(tree, "tree", 65, c) * step_s(chain, "chain", 17, c) / CHAIN_ACCEPT_LEN
        for c in (1, 2, 4, 8, 16, 32)
    }
    assert gain[1] > gain[2] > gain[4] > 1 > gain[8] > gain[16] > gain[32]


def test_without_a_drafters_cost_on_either_side_the_tree_loses_from_about_2_to_4_clients():
    fit = corner_fit()
    gain = {
        c: TREE_ACCEPT_LEN / step_s(fit, "tree", 65, c) * step_s(fit, "tree", 17, c) / CHAIN_ACCEPT_LEN
        for c in (1, 4, 8)
    }
    assert gain[1] > 1 > gain[4] > gain[8]


def test_the_same_crossover_is_seen_without_any_calibration():
    fit = fit_step_cost(hw="h100", model=quoted_model("qwen3-4b"))
    gain = {c: step_s(fit, "tree", 17, c) / step_s(fit, "tree", 65, c) for c in (1, 8)}
    assert gain[1] * TREE_ACCEPT_LEN > CHAIN_ACCEPT_LEN > gain[8] * TREE_ACCEPT_LEN


def test_sixty_tree_nodes_fall_below_plain_decoding_at_32_clients_on_b200():
    """EAGLE-3 with 60 nodes accepts 3.03 to 3.71 on Qwen3-8B (DFlash Table 1); 3.71 is taken, to its favour."""
    fit = fit_step_cost(hw="b200", model=quoted_model("qwen3-8b"))

    def gain(concurrency):
        row = {"tp_size": 1, "concurrency": concurrency, "context_tok": 512}
        off, tree = fit.predict([row, {**row, "q_len": 61, "kind": "tree"}])
        return 3.71 * off.value / tree.value

    assert gain(1) > 1.2
    assert gain(32) < 1


def test_plain_decoding_of_models_that_no_fit_has_seen():
    errors = []
    for model_id, rows in autoregressive_rows().items():
        fit = fit_step_cost(hw="b200", model=quoted_model(model_id))
        errors += [e.value / r["step_s"] - 1 for e, r in zip(fit.predict(rows), rows, strict=True)]
    assert np.mean(np.abs(errors)) < 0.10
