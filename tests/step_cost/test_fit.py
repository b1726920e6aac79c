"""The fit: what it needs, what it refuses, what it learns."""

from __future__ import annotations

import time

import numpy as np
import pytest

from planner.data import load_hardware, load_model
from planner.errors import DomainError, InputError
from planner.estimate.step_cost import fit_step_cost
from planner.estimate.step_cost.observations import quoted_model, round_rows, tpot_rows
from planner.estimate.step_cost.parameters import PARAMETER_NAMES

ROW = {"tp_size": 8, "concurrency": 16, "context_tok": 1024, "output_tok": 1024}


def rows_at(*pairs):
    return [{**ROW, "concurrency": c, "step_s": s} for c, s in pairs]


def test_without_rows_tables_speak_alone():
    fit = fit_step_cost(hw="b300", model="kimi-k2.6")
    (estimate,) = fit.predict([ROW])
    assert estimate.provenance.value == "table"
    assert 0.008 < estimate.value < 0.02
    assert estimate.high / estimate.low > 1.2


def test_without_table_the_data_sheet_speaks_and_says_so():
    (estimate,) = fit_step_cost(hw="h20", model="kimi-k2.6").predict([ROW])
    assert estimate.provenance.value == "datasheet"
    assert "data sheet" in estimate.note
    assert estimate.high / estimate.low > 2


def test_one_observation_moves_the_prediction_and_narrows_it():
    before = fit_step_cost(hw="b300", model="kimi-k2.6").predict([ROW])[0]
    fit = fit_step_cost(rows_at((16, 0.018)), hw="b300", model="kimi-k2.6")
    after = fit.predict([ROW])[0]
    assert abs(after.value - 0.018) < abs(before.value - 0.018) / 3
    assert after.high / after.low < before.high / before.low
    assert after.provenance.value == "fitted"


def test_a_folder_with_config_json_is_a_model(tmp_path):
    (tmp_path / "config.json").write_text(
        '{"architectures": ["Qwen3ForCausalLM"], "hidden_size": 2560, "intermediate_size": 9728, "head_dim": 128,'
        '"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 151936,'
        '"max_position_embeddings": 40960, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}'
    )
    (from_folder,) = fit_step_cost(hw="h100", model=tmp_path).predict([{}])
    (from_profile,) = fit_step_cost(hw="h100", model=quoted_model("qwen3-4b")).predict([{}])
    assert from_folder.value == pytest.approx(from_profile.value)


def test_steps_are_recovered_from_steps_that_the_model_made():
    """Data made with a host term of 3 ms and 0.2 ms a request are learned from six points."""
    fit = fit_step_cost(hw="b300", model="kimi-k2.6")
    ask = [{**ROW, "concurrency": c} for c in (1, 4, 16, 32, 64, 100)]
    made = [
        {**row, "step_s": estimate.value + 3e-3 + 0.2e-3 * row["concurrency"]}
        for row, estimate in zip(ask, fit.predict(ask), strict=True)
    ]
    learned = fit_step_cost(made, hw="b300", model="kimi-k2.6", noise_frac=0.01)
    for row, estimate in zip(made, learned.predict(ask), strict=True):
        assert estimate.value == pytest.approx(row["step_s"], rel=0.04)
    assert learned.posterior.value("request_host_s") > 0.1e-3


def test_ten_observations_fit_in_well_under_a_second_of_processor_time():
    rows = tpot_rows("b200")[:10]
    fit_step_cost(rows, hw="b200", model="kimi-k2.6")
    start = time.process_time()
    fit_step_cost(rows, hw="b200", model="kimi-k2.6")
    assert time.process_time() - start < 5.0


def test_parameters_stay_inside_their_bounds():
    fit = fit_step_cost(rows_at((1, 0.002), (64, 0.004)), hw="b300", model="kimi-k2.6")
    assert np.all(fit.posterior.mean >= 0)
    assert fit.posterior.value("moe_scale") >= 0.5


@pytest.mark.parametrize("value", [14.3, 1430.0])
def test_steps_in_milliseconds_are_asked_about(value):
    with pytest.raises(InputError, match=r"is it in ms \(0\.0143|is it in ms \(1\.43"):
        fit_step_cost(rows_at((16, value)), hw="b300", model="kimi-k2.6")


def test_steps_that_are_far_too_short_are_asked_about():
    with pytest.raises(InputError, match="where about"):
        fit_step_cost(rows_at((16, 14.3e-6)), hw="b300", model="kimi-k2.6")


def test_long_steps_are_taken_when_the_caller_insists():
    fit = fit_step_cost(rows_at((16, 14.3)), hw="b300", model="kimi-k2.6", units_checked=True)
    assert fit.posterior is not None


def test_an_observation_given_twice_is_refused():
    with pytest.raises(InputError, match="rows 0 and 2 are one observation given twice; keep one"):
        fit_step_cost(rows_at((16, 0.0143), (32, 0.02), (16, 0.0143)), hw="b300", model="kimi-k2.6")


def test_contradicting_observations_are_refused_and_repeats_are_not():
    with pytest.raises(InputError, match="rows 0 and 1 are one configuration and contradict each other"):
        fit_step_cost(rows_at((16, 0.0143), (16, 0.0243)), hw="b300", model="kimi-k2.6")
    fit = fit_step_cost(rows_at((16, 0.0143), (16, 0.0150)), hw="b300", model="kimi-k2.6")
    assert len(fit.rows) == 2


def test_fewer_points_than_free_parameters_are_refused():
    with pytest.raises(InputError, match=r"1 observation\(s\) cannot fit 2 parameters \(step_host_s, moe_scale\)"):
        fit_step_cost(rows_at((16, 0.0143)), hw="b300", model="kimi-k2.6", free=("step_host_s", "moe_scale"))
    with pytest.raises(InputError, match="cannot fit 1 parameters"):
        fit_step_cost(hw="b300", model="kimi-k2.6", free=("step_host_s",))


def test_a_free_parameter_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="no parameter 'step_host'; did you mean step_host_s"):
        fit_step_cost(rows_at((16, 0.0143)), hw="b300", model="kimi-k2.6", free=("step_host",))


def test_only_free_parameters_move():
    fit = fit_step_cost(rows_at((16, 0.018)), hw="b300", model="kimi-k2.6", free=("step_host_s",))
    prior = fit_step_cost(hw="b300", model="kimi-k2.6").step_model().posterior
    moved = [n for n, a, b in zip(PARAMETER_NAMES, fit.posterior.mean, prior.mean, strict=True) if not np.isclose(a, b)]
    assert moved == ["step_host_s"]


@pytest.mark.parametrize("rows", [{"step_s": 1.0}, "rows.csv"])
def test_rows_must_be_a_list(rows):
    with pytest.raises(InputError, match="sequence of mappings"):
        fit_step_cost(rows, hw="b300", model="kimi-k2.6")


def test_unknown_hardware_is_named_with_the_nearest():
    with pytest.raises(InputError, match="b300"):
        fit_step_cost(hw="b30", model="kimi-k2.6")


def test_a_question_outside_the_observations_is_marked_widened_or_refused():
    fit = fit_step_cost(rows_at((1, 0.008), (16, 0.0143)), hw="b300", model="kimi-k2.6")
    inside, outside = fit.predict([ROW, {**ROW, "concurrency": 256}])
    assert not inside.extrapolated
    assert outside.extrapolated
    assert "concurrency 256 is outside the 1 to 16 measured" in outside.note
    assert outside.high / outside.low > inside.high / inside.low
    with pytest.raises(DomainError, match="concurrency 256 is outside"):
        fit.predict([{**ROW, "concurrency": 256}], outside="refuse")
    with pytest.raises(InputError, match="outside must be mark or refuse"):
        fit.predict([ROW], outside="ignore")


def test_the_four_corners_of_a_grid_predict_its_inside():
    rows = round_rows()
    corners = [r for r in rows if r["q_len"] in (17, 129) and r["concurrency"] in (1, 32)]
    fit = fit_step_cost(corners, hw="h100", model=quoted_model("qwen3-4b"))
    rest = [r for r in rows if r not in corners]
    errors = [e.value / r["step_s"] - 1 for e, r in zip(fit.predict(rest), rest, strict=True)]
    assert np.mean(np.abs(errors)) < 0.045


def test_a_drafter_named_in_the_rows_is_priced():
    fit = fit_step_cost(hw="b300", model="kimi-k2.6")
    without, with_draft = fit.predict(
        [{**ROW, "q_len": 9, "kind": "tree"}, {**ROW, "q_len": 9, "draft": "kimi-k2.6-dflash"}]
    )
    assert with_draft.value > without.value


def test_profiles_are_taken_as_they_are():
    fit = fit_step_cost(hw=load_hardware("b300"), model=load_model("kimi-k2.6"))
    assert fit.hardware.id == "b300"
