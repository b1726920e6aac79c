"""Chains and MTP heads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.estimate.acceptance import ChainAcceptance, fit_acceptance


def chain_fit(points: list[object], block_size: int = 16) -> ChainAcceptance:
    fit = fit_acceptance(points, block_size, kind="chain")
    assert isinstance(fit, ChainAcceptance)
    return fit


@given(st.floats(-1.0, 4.0), st.floats(0.0, 1.5), st.sets(st.integers(1, 8), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_a_logit_decay_chain_is_recovered(a: float, b: float, lengths: set[int]) -> None:
    truth = 1 + np.cumsum(np.cumprod(1 / (1 + np.exp(-(a - b * np.arange(15))))))
    fit = chain_fit([(n, float(truth[n - 1])) for n in sorted(lengths)])
    for n in lengths:
        assert fit.predict(n).value == pytest.approx(truth[n - 1], rel=0.03)
    answer = fit.predict_band(np.arange(0, 16))
    step = np.diff(answer.value)
    assert answer.value[0] == 1.0
    assert (step >= -1e-12).all()
    assert (np.diff(step) <= 0.05).all()
    assert (answer.high <= 1 + np.arange(0, 16)).all()


def test_saturating_mtp_heads() -> None:
    """DeepSeek-V4 MTP (InferenceX) stops gaining after the third token: 1 and 4 drafted tokens known."""
    fit = chain_fit([(1, 1.79), (4, 2.54)])
    for drafted, measured in ((2, 2.27), (3, 2.49), (6, 2.55), (8, 2.58)):
        estimate = fit.predict(drafted)
        assert estimate.value == pytest.approx(measured, rel=0.05)
        assert estimate.low <= measured <= estimate.high


def test_long_chains_stop_at_the_block() -> None:
    fit = chain_fit([(3, 3.0)], 8)
    assert fit.predict(20).value == fit.predict(7).value
    assert fit.predict(20).extrapolated


def test_samples() -> None:
    fit = chain_fit([(3, 2.9), (7, 3.7)], 9)
    samples = fit.sample(range(1, 9), 2048, 3)
    assert samples.shape == (2048, 8)
    np.testing.assert_array_equal(samples, fit.sample(range(1, 9), 2048, 3))
    np.testing.assert_allclose(samples.mean(axis=0), fit.predict_band(range(1, 9)).value, rtol=0.01)
    assert fit.predict_chain(3) == fit.predict(3)


def test_one_point_says_what_it_does_not_know() -> None:
    assert "saturation is not seen" in (chain_fit([(3, 2.9)]).predict(7).note or "")
