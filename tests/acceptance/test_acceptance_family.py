"""Shape of the curve family, and trees against the brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.data.files import list_names
from planner.estimate.acceptance.builder import best_first_tree
from planner.estimate.acceptance.family import (
    BUDGET_KNOTS,
    NODES,
    TreeShape,
    compute_slopes,
    curve_table,
    decode_slopes,
    encode_slopes,
    rank_probabilities,
)
from planner.estimate.acceptance.gains import beam_gains, best_first_gains, chain_gains, spine_gains


@st.composite
def marginals(draw: st.DrawFn, max_depth: int = 4, max_ranks: int = 5) -> np.ndarray:
    """(depths, ranks), each depth sorted downwards and summing to at most 1."""
    depth = draw(st.integers(1, max_depth))
    ranks = draw(st.integers(1, max_ranks))
    raw = np.array(
        draw(st.lists(st.lists(st.floats(0.01, 1.0), min_size=ranks, max_size=ranks), min_size=depth, max_size=depth))
    )
    return -np.sort(-raw / (raw.sum(axis=1, keepdims=True) * draw(st.floats(1.0, 1.5))), axis=1)


def all_paths(probs: np.ndarray) -> list[float]:
    """Products of every path, largest first."""
    out = []
    for depth in range(1, len(probs) + 1):
        for ranks in itertools.product(range(probs.shape[1]), repeat=depth):
            out.append(float(np.prod([probs[d, r] for d, r in enumerate(ranks)])))
    return sorted(out, reverse=True)


@given(marginals(), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_best_first_takes_the_most_probable_paths(probs: np.ndarray, budget: int) -> None:
    best = all_paths(probs)[:budget]
    gains = best_first_gains(probs[None], budget)[0]
    np.testing.assert_allclose(gains[: len(best)], best, rtol=1e-5)
    assert not gains[len(best) :].any()
    tree = best_first_tree(probs, budget)
    np.testing.assert_allclose(np.sort(tree.path_prob)[::-1], best, rtol=1e-9)


@given(marginals(), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_built_trees_are_trees_and_nested(probs: np.ndarray, budget: int) -> None:
    tree = best_first_tree(probs, budget)
    assert len(tree) <= budget
    for node, (parent, depth) in enumerate(zip(tree.parent, tree.depth, strict=True)):
        assert parent < node
        assert depth == (1 if parent < 0 else tree.depth[parent] + 1)
    smaller = best_first_tree(probs, max(1, budget // 2))
    np.testing.assert_array_equal(tree.path_prob[: len(smaller)], smaller.path_prob)


@given(marginals(max_depth=3, max_ranks=4), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_spine_holds_the_chain_first_then_the_best_of_the_rest(probs: np.ndarray, budget: int) -> None:
    tree = best_first_tree(probs, budget, spine_guarantee=True)
    n_chain = min(budget, len(probs))
    chain = np.cumprod(probs[:, 0])[:n_chain]
    np.testing.assert_allclose(tree.path_prob[:n_chain], chain, rtol=1e-9)
    np.testing.assert_allclose(spine_gains(probs[None], budget)[0][: len(tree)], tree.path_prob, rtol=1e-5)
    assert tree.accept_len <= best_first_tree(probs, budget).accept_len + 1e-9


@given(marginals(), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_one_alternate_is_the_chain(probs: np.ndarray, budget: int) -> None:
    chain = chain_gains(probs[None])[0]
    gains = best_first_gains(probs[None, :, :1], budget)[0]
    n = min(budget, len(chain))
    np.testing.assert_allclose(gains[:n], chain[:n], rtol=1e-6)
    tree = best_first_tree(probs, budget, topk=1)
    np.testing.assert_allclose(tree.path_prob, np.cumprod(probs[:, 0])[: len(tree)], rtol=1e-9)


@given(marginals(), st.integers(1, 20), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_a_beam_never_beats_best_first(probs: np.ndarray, budget: int, width: int) -> None:
    narrow = probs[None, :, :width]
    assert beam_gains(probs[None], budget, width=width).sum() <= best_first_gains(narrow, budget).sum() + 1e-5


def test_a_wide_beam_is_best_first() -> None:
    probs = -np.sort(-np.random.default_rng(3).dirichlet(np.ones(4), size=(6, 3)), axis=2)
    np.testing.assert_allclose(beam_gains(probs, 10, width=84)[:, :10], best_first_gains(probs, 10), rtol=1e-5)


@pytest.mark.parametrize(("depth", "topk", "shape"), [(7, 4, "best_first"), (3, None, "best_first"), (7, 4, "eagle")])
def test_curves_are_monotone_concave_and_capped(depth: int, topk: int | None, shape: str) -> None:
    table = curve_table(depth, topk=topk, shape=TreeShape(shape), max_budget=64)
    budgets = np.arange(0, 65)
    curves = table.at(budgets)
    step = np.diff(curves, axis=1)
    np.testing.assert_array_equal(curves[:, 0], 1.0)
    assert (step >= 0).all()
    assert (step <= 1 + 1e-9).all()
    assert (np.diff(step, axis=1) <= 1e-9).all()
    assert (curves <= 1 + np.minimum(budgets, depth) + 1e-9).all()


def test_packaged_table_is_what_the_code_computes() -> None:
    """Protects against a table that was not rebuilt after a change of the family."""
    packaged = curve_table(7, topk=4, shape=TreeShape.BEST_FIRST, max_budget=64)
    slopes = compute_slopes(7, topk=4, shape=TreeShape.BEST_FIRST, n_nodes=64)
    knots = BUDGET_KNOTS[: slopes.shape[1]]
    fresh = 1 + np.cumsum(slopes * np.diff(knots, prepend=0), axis=1)
    np.testing.assert_allclose(packaged.at(knots), fresh, rtol=2e-3)


def test_packaged_tables_are_small() -> None:
    """Protects the size of the wheel: all tables stay under 3 MB."""
    from planner.data.files import read_bytes

    total = sum(len(read_bytes(f"acceptance/{name}")) for name in list_names("acceptance", ".npz"))
    assert 0 < total < 3_000_000


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_slope_code_keeps_order_and_size(values: list[float]) -> None:
    slopes = -np.sort(-np.array([values]))
    decoded = decode_slopes(encode_slopes(slopes))
    assert (np.diff(decoded) <= 0).all()
    visible = slopes > 1e-6
    np.testing.assert_allclose(decoded[visible], slopes[visible], rtol=3e-3)


def test_rank_probabilities_are_probabilities() -> None:
    probs = rank_probabilities(NODES[::97], 7, 16)
    assert (probs >= 0).all()
    assert (probs.sum(axis=-1) <= 1 + 1e-9).all()
    assert (np.diff(probs, axis=-1) <= 0).all()
