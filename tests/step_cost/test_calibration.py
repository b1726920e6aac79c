"""Calibration files: round trip, refusals, use on another machine."""

from __future__ import annotations

import json

import numpy as np
import pytest

from planner.data import load_hardware, load_model
from planner.errors import DomainError, InputError
from planner.estimate.step_cost import (
    StepBatch,
    calibrated_model,
    fit_step_cost,
    read_calibration,
    report_lines,
    write_calibration,
)
from planner.estimate.step_cost.observations import tpot_rows

FIT = fit_step_cost(tpot_rows("b200")[:6], hw="b200", model="kimi-k2.6")
TEXT = write_calibration(FIT.calibration("six InferenceX rows"))


def test_reading_gives_the_same_predictions_and_writing_the_same_bytes():
    calibration = read_calibration(TEXT)
    assert write_calibration(calibration) == TEXT
    hardware, model = load_hardware("b200"), load_model("kimi-k2.6")
    batch = StepBatch.from_columns(tp_size=8, running=[1, 32])
    ours = calibrated_model(calibration, hardware, model, framework="vllm").predict_columns(batch)
    fitted = FIT.step_model(framework="vllm").predict_columns(batch)
    np.testing.assert_allclose(ours.value_s, fitted.value_s)
    np.testing.assert_allclose(ours.low_s, fitted.low_s)


def test_observations_residuals_and_domain_are_in_the_file():
    body = json.loads(TEXT)
    assert len(body["observations"]) == 6
    for entry in body["observations"]:
        assert entry["residual_frac"] == pytest.approx(entry["fitted_s"] / entry["step_s"] - 1)
    assert body["domain"]["running"] == [4.0, 32.0]
    assert body["parameters"]["step_host_s"]["unit"] == "s"


def test_a_calibration_is_refused_on_another_machine_or_model():
    calibration = read_calibration(TEXT)
    with pytest.raises(DomainError, match="made on b200, not on b300"):
        calibrated_model(calibration, load_hardware("b300"), load_model("kimi-k2.6"))
    with pytest.raises(DomainError, match=r"is of kimi-k2\.6, not of kimi-k2\.6-nvfp4"):
        calibrated_model(calibration, load_hardware("b200"), load_model("kimi-k2.6-nvfp4"))


def changed(**keys):
    body = json.loads(TEXT)
    body.update(keys)
    return json.dumps({key: value for key, value in body.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cal.json:1: not JSON"),
        ("[]", "not a step-cost calibration"),
        (changed(what="acceptance"), "not a step-cost calibration"),
        (changed(schema_version=9), "schema_version 9"),
        (changed(covariance=None), "key 'covariance' is missing"),
        (changed(covariance=[[1.0]]), "covariance must be"),
        (changed(parameters={"moe_scale": {"mean": 1, "sd": 1}}), "parameters differ"),
    ],
)
def test_bad_files_are_refused_with_the_reason(text, message):
    with pytest.raises(InputError) as caught:
        read_calibration(text, name="cal.json")
    assert message in str(caught.value)


def test_nothing_fitted_is_no_calibration():
    with pytest.raises(InputError, match="at least one observation"):
        fit_step_cost(hw="b200", model="kimi-k2.6").calibration("nothing")


def test_the_report_plots_each_residual():
    lines = report_lines(read_calibration(TEXT))
    assert "6 observations" in lines[0]
    assert sum("*" in line for line in lines) >= 5
    assert any("inside the 90 % band" in line for line in lines)
