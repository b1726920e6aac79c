"""Distinct values and quantiles: those of numpy, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.estimate.order import distinct, quantiles


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_distinct_is_numpys_unique(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    found, inverse = distinct(array)
    wanted, wanted_inverse = np.unique(array, return_inverse=True)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(inverse, wanted_inverse)


@pytest.mark.parametrize("n", [1, 2, 5, 400, 512])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_quantiles_are_numpys(n: int, shape: tuple[int, ...]) -> None:
    draws = np.random.default_rng(n).normal(size=(n, *shape))
    fractions = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.95, 1.0)
    np.testing.assert_array_equal(quantiles(draws, fractions), np.quantile(draws, fractions, axis=0))
