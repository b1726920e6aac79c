"""``planner.fit_step_cost`` and ``planner.fit_acceptance`` as strangers call them: other inputs, other models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import planner
from planner.errors import InputError

CONFIGS = {
    "dense": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    },
    "moe": {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 262144,
        "torch_dtype": "bfloat16",
    },
}


@pytest.fixture
def folder(tmp_path: Path):
    def make(kind: str) -> Path:
        path = tmp_path / kind
        path.mkdir()
        (path / "config.json").write_text(json.dumps(CONFIGS[kind]), encoding="utf-8")
        return path

    return make


def grid(scale: float = 1.0) -> list[dict[str, object]]:
    corners = ((1, 17, 0.0098), (32, 17, 0.0239), (1, 129, 0.0113), (32, 129, 0.080))
    return [{"concurrency": c, "q_len": q, "step_s": scale * s} for c, q, s in corners]


@pytest.mark.parametrize("kind", ["dense", "moe"])
@pytest.mark.parametrize("hw", ["h100", "b200", "h200", "l40s", "a100", "gb300", "rtx_pro_6000"])
def test_any_machine_and_model_folder_gives_ordered_estimates(folder, kind, hw):
    fit = planner.fit_step_cost(hw=hw, model=folder(kind))
    rows = [{"concurrency": c, "q_len": q, "tp_size": 1} for c in (1, 8, 64) for q in (1, 9, 65)]
    answers = fit.predict(rows)
    assert all(0 < answer.low < answer.value < answer.high for answer in answers)
    by_row = {(row["concurrency"], row["q_len"]): answer.value for row, answer in zip(rows, answers, strict=True)}
    assert by_row[1, 1] < by_row[8, 1] < by_row[64, 1]
    assert by_row[64, 1] < by_row[64, 9] < by_row[64, 65]


def test_rows_of_a_table_with_empty_cells(folder):
    """A data frame gives NaN where a row does not say and 1.0 for true: neither is a fault."""
    nan = float("nan")
    rows = [{**row, "ep_size": nan, "draft": nan, "kv_dtype": nan, "cuda_graph": 1.0, "id": None} for row in grid()]
    model = folder("dense")
    fit, plain = (planner.fit_step_cost(given, hw="h100", model=model) for given in (rows, grid()))
    question = [{"concurrency": 8, "q_len": 65}]
    assert fit.predict(question)[0].value == plain.predict(question)[0].value


@pytest.mark.parametrize("field", ["concurrency", "step_s"])
def test_a_measurement_that_is_no_number_is_not_an_empty_cell(folder, field):
    with pytest.raises(InputError, match="not a number"):
        planner.fit_step_cost([{**grid()[0], field: float("nan")}], hw="h100", model=folder("dense"))


def test_another_models_drafter_is_not_taken_by_its_alias(folder):
    """``dflash`` is an alias of the packaged Kimi drafter: on another model it is another drafter, of another block."""
    rows = [{"q_len": 16, "draft": "dflash", "kind": "chain", "accept_len": 8.01, "concurrency": 4}]
    fit = planner.fit_step_cost(hw="b200", model=folder("dense"))
    assert fit.predict(rows)[0].value > 0
    own = planner.fit_step_cost([{"draft": "dflash", "q_len": 8, "step_s": 0.02}], hw="b300", model="kimi-k2.6")
    assert own.drafter is not None
    assert own.drafter.id == "kimi-k2.6-dflash"


def test_rows_that_say_what_tells_them_apart_are_no_contradiction(folder):
    """Two drafters of one block size take different times; so do two engine versions."""
    rows = [{**grid()[0], "draft": "one"}, {**grid()[0], "draft": "other", "step_s": 0.02}]
    assert len(planner.fit_step_cost(rows, hw="h100", model=folder("dense")).rows) == 2
    same = [{**grid()[0], "draft": "one"}, {**grid()[0], "draft": "one", "step_s": 0.02}]
    with pytest.raises(InputError, match="contradict each other"):
        planner.fit_step_cost(same, hw="h100", model="kimi-k2.6")


def test_a_backend_of_which_nothing_is_known_is_marked() -> None:
    fit = planner.fit_step_cost(hw="b200", model="kimi-k2.6")
    known, absent, unknown = fit.predict([{"attention_backend": name} for name in ("triton", None, "dsa")])
    assert not known.extrapolated
    assert not absent.extrapolated
    assert unknown.extrapolated
    assert unknown.note is not None
    assert "'dsa' is priced as the default one" in unknown.note


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"tp_size": 4, "attention_dp_size": 8}, "8 attention-DP ranks do not divide tp_size 4"),
        ({"tp_size": 7}, "7 ranks cannot share the 64 attention heads"),
        ({"prefix_hit_frac": 60}, "60 must be at most 1"),
        ({"q_len": 4, "accept_len": 4.5}, "4.5 is above its cap of 4 (q_len 4)"),
        ({"q_len": 4, "accept_len": 3.5, "bonus_counted": False}, "4.5 is above its cap of 4"),
        ({"kv_dtype": "fp4"}, "'fp4' is unknown"),
    ],
)
def test_values_that_cannot_be_are_named(row, text):
    with pytest.raises(InputError) as caught:
        planner.fit_step_cost(hw="b200", model="kimi-k2.6").predict([row])
    assert text in str(caught.value)


@pytest.mark.parametrize("scale", [0.5, 2.0, 4.0])
def test_a_deployment_far_from_the_prior_is_followed(folder, scale):
    """Four measurements that agree with each other are not noise because the prior expected something else."""
    fit = planner.fit_step_cost(grid(scale), hw="h100", model=folder("dense"))
    errors = [row.residual_frac for row in fit.rows]
    assert np.max(np.abs(errors)) < 0.12


def test_measurements_that_the_prior_expects_do_not_widen_it(folder):
    """Widening is for surprises: data near the prior leave it as it is, and the interval shrinks."""
    model = folder("dense")
    free = planner.fit_step_cost(hw="h100", model=model)
    rows = [{"concurrency": c, "tp_size": 1} for c in (1, 16)]
    measured = [{**row, "step_s": 1.01 * e.value} for row, e in zip(rows, free.predict(rows), strict=True)]
    fit = planner.fit_step_cost(measured, hw="h100", model=model)
    question = [{"concurrency": 4, "tp_size": 1}]
    (before,), (after,) = free.predict(question), fit.predict(question)
    assert after.high / after.low < before.high / before.low


def test_acceptance_points_from_an_array():
    """A table of points as an array is read like tuples."""
    points = np.array([[8, 4.48], [16, 4.95]])
    of_array, of_tuples = (planner.fit_acceptance(given, 8) for given in (points, [(8, 4.48), (16, 4.95)]))
    assert of_array.predict(12).value == of_tuples.predict(12).value


def test_a_fit_of_ten_observations_is_quick_and_the_same_each_time(folder):
    model = folder("dense")
    rows = [{"concurrency": c, "q_len": q, "step_s": 0.005 + 1e-5 * c * q} for c in (1, 4, 8, 16, 32) for q in (1, 17)]
    one, two = (planner.fit_step_cost(rows, hw="h100", model=model) for _ in range(2))
    assert np.array_equal(one.posterior.mean, two.posterior.mean)
