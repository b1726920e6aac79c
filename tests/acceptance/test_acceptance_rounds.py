"""Exact mode from logged rounds, and the static tree it is compared with."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from planner.domain import Provenance
from planner.errors import InputError
from planner.estimate.acceptance import acceptance_from_rounds, best_first_tree, calibrate_depths, optimal_static_tree
from planner.estimate.acceptance.family import rank_probabilities


def log_rounds(n: int = 400, depth: int = 7, ranks: int = 24, seed: int = 0) -> np.ndarray:
    """Marginals of rounds of mixed ease, (n, depth, ranks)."""
    rng = np.random.default_rng(seed)
    ease = rng.standard_normal((n, 1))
    first = 1 / (1 + np.exp(-(2.0 - 0.35 * np.arange(depth) + 1.8 * ease)))
    weight = np.arange(2, 200) ** -2.0
    weight /= weight.sum()
    full = np.concatenate([first[..., None], (1 - first)[..., None] * weight[: ranks - 1]], axis=2)
    return -np.sort(-full, axis=2)


def choose(probs: np.ndarray, seed: int = 1) -> np.ndarray:
    """Ranks of the target's tokens drawn from the marginals; -1 after the first rank that no tree of one path holds."""
    rng = np.random.default_rng(seed)
    cumulated = np.cumsum(probs, axis=2)
    return (rng.random(probs.shape[:2])[..., None] > cumulated).sum(axis=2)


def test_the_mean_of_trees_is_the_mean_over_built_trees() -> None:
    probs = log_rounds(40)
    exact = acceptance_from_rounds(probs)
    for budget in (1, 4, 8, 20):
        built = np.mean([best_first_tree(rows, budget).accept_len for rows in probs])
        assert exact.predict(budget).value == pytest.approx(built, rel=1e-5)  # type: ignore[union-attr]
    spine = acceptance_from_rounds(probs, spine_guarantee=True)
    built = np.mean([best_first_tree(rows, 10, spine_guarantee=True).accept_len for rows in probs])
    assert spine.predict(10).value == pytest.approx(built, rel=1e-5)  # type: ignore[union-attr]


def test_averaging_marginals_first_under_predicts() -> None:
    """The trap this module exists to avoid: a static tree from population marginals is several per cent low."""
    probs = log_rounds()
    exact = acceptance_from_rounds(probs)
    for budget in (8, 16, 64):
        static = best_first_tree(probs.mean(axis=0), budget).accept_len
        assert static < 0.97 * exact.predict(budget).value  # type: ignore[union-attr]


def test_calibration_finds_the_temperature() -> None:
    """A drafter twice as sure of itself as it should be is brought back."""
    honest = log_rounds(3000, depth=3)
    rest = 1 - honest.sum(axis=2, keepdims=True)
    sharp = np.concatenate([honest, rest], axis=2) ** 2.0
    sharp = (sharp / sharp.sum(axis=2, keepdims=True))[..., :-1]
    temperature = calibrate_depths(sharp, choose(honest))
    np.testing.assert_allclose(temperature, 2.0, rtol=0.12)
    np.testing.assert_allclose(calibrate_depths(honest, choose(honest)), 1.0, rtol=0.12)
    calibrated = acceptance_from_rounds(sharp, target_rank=choose(honest))
    assert calibrated.predict(8).value == pytest.approx(  # type: ignore[union-attr]
        acceptance_from_rounds(honest).predict(8).value,  # type: ignore[union-attr]
        rel=0.03,
    )


def test_depths_that_few_rounds_reach_share_a_temperature() -> None:
    probs = log_rounds(200)
    ranks = choose(probs)
    ranks[5:, 4:] = -1
    temperature = calibrate_depths(probs, ranks)
    assert (temperature[4:] == temperature[3]).all()


def test_estimates_and_samples() -> None:
    exact = acceptance_from_rounds(log_rounds(), target_rank=choose(log_rounds()))
    four, eight = exact.predict([4, 8])  # type: ignore[misc]
    assert four.value < eight.value
    assert eight.provenance is Provenance.DERIVED
    assert not eight.extrapolated
    assert exact.predict_chain(7).value < exact.predict(7).value  # type: ignore[union-attr]
    samples = exact.sample([4, 8], 1024, 5)
    np.testing.assert_array_equal(samples, exact.sample([4, 8], 1024, 5))
    assert samples.shape == (1024, 2)
    low, high = np.quantile(samples[:, 1], [0.05, 0.95])
    assert (low, high) == pytest.approx((eight.low, eight.high), rel=0.02)
    assert acceptance_from_rounds(log_rounds(50)).predict(8).extrapolated  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("marginals", "message"),
    [
        (np.ones((3, 4)), "shape"),
        (np.full((2, 3, 4), 0.5), "sum to at most 1"),
        (np.full((2, 3, 4), -1.0), "sum to at most 1"),
        (np.tile([0.1, 0.5], (2, 3, 1)), "largest first"),
    ],
)
def test_bad_logs(marginals: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        acceptance_from_rounds(marginals)


def test_bad_ranks() -> None:
    with pytest.raises(InputError, match="target_rank"):
        calibrate_depths(log_rounds(5), np.zeros((5, 2), dtype=int))


def test_bad_tree_requests() -> None:
    with pytest.raises(InputError, match="budget"):
        best_first_tree([[0.5, 0.2]], 0)
    with pytest.raises(InputError, match="largest first"):
        best_first_tree([[0.2, 0.5]], 3)


SEQUOIA = [0.63418, 0.10795, 0.05697, 0.02249, 0.01949, 0.01499, 0.0045, 0.003]
"""First ranks of the demo vector of Infini-AI-Lab/Sequoia @0ff3ff71475c."""


@pytest.mark.parametrize("budget", [1, 2, 5, 16, 40])
def test_static_optimum_is_best_first_on_positional_acceptance(budget: int) -> None:
    """With one acceptance vector for all depths the dynamic programme and the greedy tree reach the same value."""
    static = optimal_static_tree(SEQUOIA, budget, max_depth=6)
    greedy = best_first_tree(np.tile(-np.sort(-np.array(SEQUOIA)), (6, 1)), budget)
    assert static.accept_len == pytest.approx(greedy.accept_len)
    assert len(static.children) == budget
    value = 1.0
    path = {-1: 1.0}
    for node, (parent, depth, rank) in enumerate(static.children):
        assert parent < node
        assert depth <= 6
        path[node] = path[parent] * SEQUOIA[rank]
        value += path[node]
    assert value == pytest.approx(static.accept_len)


def test_static_optimum_against_brute_force() -> None:
    probs = np.array([[0.5, 0.3, 0.1], [0.6, 0.1, 0.05]])
    first = [(r,) for r in range(3)]
    nodes = first + list(itertools.product(range(3), repeat=2))
    best = 0.0
    for chosen in itertools.combinations(nodes, 4):
        if all(len(node) == 1 or node[:1] in chosen for node in chosen):
            best = max(best, sum(float(np.prod([probs[d, r] for d, r in enumerate(node)])) for node in chosen))
    assert optimal_static_tree(probs, 4, max_depth=2).accept_len == pytest.approx(1 + best)


def test_bad_static_requests() -> None:
    with pytest.raises(InputError, match="sums to at most 1"):
        optimal_static_tree([0.9, 0.9], 4, max_depth=2)
    with pytest.raises(InputError, match="budget"):
        optimal_static_tree([0.5], 0, max_depth=2)


def test_family_rounds_reproduce_the_curve() -> None:
    """Exact mode on the family's own eases gives the tabulated curve: one definition of a tree in both."""
    from planner.estimate.acceptance.family import NODES, TreeShape, curve_table

    node = 900
    exact = acceptance_from_rounds(rank_probabilities(NODES[node : node + 1], 7, 64)[0])
    table = curve_table(7, topk=None, shape=TreeShape.BEST_FIRST, max_budget=64)
    np.testing.assert_allclose(
        exact.per_round([1, 4, 8, 16, 64]).mean(axis=0), table.at([1, 4, 8, 16, 64])[node], rtol=2e-3
    )
