"""The packaged calibration of B300 with Kimi K2.6: what it was fitted to, what it predicts, what decides at C = 128."""

from __future__ import annotations

import numpy as np
import pytest

from planner.data import load_drafter, load_hardware, load_model
from planner.estimate.step_cost import StepBatch, default_model
from planner.estimate.step_cost.api import fit_step_cost
from planner.estimate.step_cost.default import packaged_calibration
from planner.estimate.step_cost.evaluate import launch_bounds_s
from planner.estimate.step_cost.observations import field_rows
from planner.estimate.step_cost.parameters import PARAMETER_NAMES

B300, KIMI, DFLASH = load_hardware("b300"), load_model("kimi-k2.6"), load_drafter("kimi-k2.6-dflash")
MODEL = default_model(B300, KIMI, DFLASH)


def traffic(**columns):
    """Columns of the field build, which runs trees without the overlap scheduler."""
    return StepBatch.from_columns(
        tp_size=8, context_tok=1536, prompt_tok=1024, output_tok=1024, **({"overlap": 0.0} | columns)
    )


def test_the_packaged_file_is_what_the_packaged_observations_give():
    fit = fit_step_cost(field_rows(), hw=B300, model=KIMI, drafter=DFLASH, noise_frac=0.06)
    packaged = packaged_calibration(B300, KIMI)
    assert packaged is not None
    np.testing.assert_allclose(fit.posterior.mean, packaged.posterior.mean, rtol=1e-6, atol=1e-12)
    assert packaged.domain.kinds == {0, 2}
    assert packaged.domain.layouts == {(8, 1, 1)}


@pytest.mark.parametrize("row", packaged_calibration(B300, KIMI).rows, ids=lambda row: str(row.row["id"]))
def test_calibration_rows_are_met_within_their_own_scatter(row):
    assert abs(row.residual_frac) < 0.08


@pytest.mark.parametrize("row", field_rows(role="predict"), ids=lambda row: str(row["id"]))
def test_eager_runs_are_predicted_without_having_been_fitted(row):
    """FN-08: 111 tok/s at budget 16; FN-14: 3.8 times slower than graphs at budget 8."""
    estimate = fit_step_cost(field_rows(), hw=B300, model=KIMI, drafter=DFLASH, noise_frac=0.06).predict([row])[0]
    assert estimate.low <= row["step_s"] <= estimate.high
    assert estimate.value == pytest.approx(row["step_s"], rel=0.15)


def test_both_eager_runs_bound_the_launches_of_a_step_to_a_common_range():
    low, high = np.array([bounds for _, bounds in launch_bounds_s()]).T
    assert low.max() < high.min()
    launches = MODEL.posterior.value("layer_launch_s") * (KIMI.n_layers + DFLASH.n_layers)
    assert 0.85 * low.max() < launches < 1.15 * high.min()


def test_target_of_the_headline_command():
    """C = 64, 1K in and out, budget 8: a step of 75 to 88 ms of which the host takes 22 to 34 ms."""
    columns = MODEL.predict_columns(traffic(q_len=9, speculation=2, running=64, accept_len=4.48))
    assert 0.075 < columns.value_s[0] < 0.088
    assert 0.022 < columns.parts["host"][0] < 0.034
    tok_per_s = 64 * 4.48 / columns.value_s[0]
    assert 2900 < tok_per_s < 4000


@pytest.mark.parametrize("running", [1, 8, 32, 64])
def test_the_tree_beats_plain_decoding_up_to_64_clients(running):
    draws = MODEL.sample(traffic(q_len=[9, 1], speculation=[2, 0], running=running, accept_len=[4.48, 1]), 2000, 1)
    assert np.mean(4.48 / draws[:, 0] > 1 / draws[:, 1]) > 0.95


def test_at_128_clients_plain_decoding_comes_near_and_its_host_term_decides():
    """Nothing was measured without speculation above C = 1: the host term for each request spans the answer."""
    off = MODEL.predict_columns(traffic(running=128))
    tree = MODEL.predict_columns(traffic(q_len=9, speculation=2, running=128, accept_len=4.48))
    assert 128 / off.low_s[0] > 0.9 * 128 * 4.48 / tree.value_s[0]
    i = PARAMETER_NAMES.index("request_host_s")
    spread = 1.645 * np.sqrt(MODEL.posterior.covariance[i, i]) * 128
    assert spread > 0.3 * (off.high_s[0] - off.low_s[0]) / 2


def test_one_point_cannot_tell_a_term_for_each_request_from_one_for_each_token():
    """All forms stay: their sum is known at C = 128, q_len 9, and they trade against each other."""
    names = ("spec_request_s", "spec_serial_request_s", "spec_row_s")
    index = [PARAMETER_NAMES.index(name) for name in names]
    covariance = MODEL.posterior.covariance[np.ix_(index, index)]
    weight = np.array([1.0, 1.0, 9.0])
    assert covariance[0, 1] < 0
    assert covariance[1, 2] < 0
    alone = np.sqrt((weight**2 * np.diag(covariance)).sum())
    assert np.sqrt(weight @ covariance @ weight) < 0.9 * alone
    assert 0.1e-3 < MODEL.posterior.mean[index] @ weight < 0.47e-3


def test_budget_16_with_graphs_is_below_the_constant_step_projection():
    """285 x 5.8 / 4.48 = 369 tok/s assumes that 17 tokens cost what 9 cost."""
    columns = MODEL.predict_columns(traffic(q_len=[9, 17], speculation=2, running=1, accept_len=[4.48, 4.85]))
    assert 1.1 < columns.value_s[1] / columns.value_s[0] < 1.3
    assert 4.85 / columns.value_s[1] < 330
