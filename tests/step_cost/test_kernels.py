"""Kernel tables: monotone curves, interpolation, packing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.estimate.step_cost.default import kernel_table
from planner.estimate.step_cost.kernels import Grid, KernelTable, decode_table, encode_table, interpolate_log, monotone

latencies = st.lists(st.floats(1e-6, 1e-1), min_size=2, max_size=20).map(np.array)


@given(latencies)
def test_monotone_removes_every_dip_and_stays_inside_the_measured_range(values):
    smooth = monotone(values)
    assert np.all(np.diff(smooth) >= -1e-18)
    assert values.min() * (1 - 1e-12) <= smooth.min()
    assert smooth.max() <= values.max() * (1 + 1e-12)


@given(latencies)
def test_monotone_leaves_a_monotone_curve_alone(values):
    rising = np.sort(values)
    np.testing.assert_allclose(monotone(rising), rising, rtol=1e-12)


@given(latencies, st.floats(0.5, 1e6))
def test_interpolation_of_a_monotone_curve_is_monotone(values, at):
    axis = 2.0 ** np.arange(values.size)
    curve = monotone(values)
    low, high = interpolate_log(axis, curve, np.array([at, at * 1.5]))
    assert low <= high * (1 + 1e-12)


def test_interpolation_is_exact_at_the_points_and_grows_at_most_in_proportion_beyond():
    axis, curve = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 27.0])
    np.testing.assert_allclose(interpolate_log(axis, curve, axis), curve)
    assert interpolate_log(axis, curve, 8.0) == pytest.approx(54.0)
    assert interpolate_log(axis, curve, 0.5) == pytest.approx(1.0)


def test_packing_keeps_latencies_to_a_fifth_of_a_per_mille_and_fills_holes():
    axis = np.array([1.0, 2.0, 4.0])
    grid = Grid((axis, axis), np.array([[1e-6, 2e-6, 4e-6], [2e-6, np.nan, 8e-6], [4e-3, 8e-3, 16e-3]]))
    table = decode_table(encode_table(KernelTable("x", {"gemm|bfloat16": grid}, "source")))
    found = table.get("gemm", "bfloat16")
    assert found is not None
    known = np.isfinite(grid.latency_s)
    np.testing.assert_allclose(found.latency_s[known], grid.latency_s[known], rtol=2e-4)
    assert 2e-6 < found.latency_s[1, 1] < 8e-3
    assert table.get("gemm", "nvfp4") is None
    assert not found.latency_s.flags.writeable


@pytest.mark.parametrize("system", ["b300_sxm", "b200_sxm", "h200_sxm", "h100_sxm", "gb200", "rtx_pro_6000_server"])
def test_packaged_expert_curves_have_no_dip_that_a_search_could_exploit(system):
    """The B300 table has 811 us at 768 tokens and 640 us at 1024 under one routing."""
    table = kernel_table(system)
    keys = table.keys("moe", 7168, 2048, 8, 384)
    assert len(keys) > 20
    for key in keys:
        curve = table.curve(*key)
        assert curve is not None
        assert np.all(np.diff(curve[1]) >= 0)
        assert curve[0][0] == 1.0


def test_all_reduce_sizes_are_bytes_not_elements():
    """The source counts 2-byte elements: 16 KB over 8 GPUs takes 5.4 us in a graph on B300."""
    curve = kernel_table("b300_sxm").curve("comm", "all_reduce", "sglang_graph", 8)
    assert curve is not None
    assert float(interpolate_log(*curve, 16384.0)) == pytest.approx(5.4e-6, rel=0.02)
    assert float(interpolate_log(*curve, 1 << 20)) == pytest.approx(15.3e-6, rel=0.02)
