"""The vectorised model: parts, intervals, joint samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.data import load_drafter, load_hardware, load_model
from planner.estimate.step_cost import StepBatch, default_model

B300, KIMI, DFLASH = load_hardware("b300"), load_model("kimi-k2.6"), load_drafter("kimi-k2.6-dflash")
MODEL = default_model(B300, KIMI, DFLASH)


def batch_of(rows: int, seed: int = 0) -> StepBatch:
    rng = np.random.default_rng(seed)
    speculation = rng.integers(0, 3, rows)
    q_len = np.where(speculation == 0, 1, rng.integers(2, 65, rows))
    return StepBatch.from_columns(
        tp_size=rng.choice([4, 8], rows),
        ep_size=rng.choice([1, 4], rows),
        attention_dp_size=rng.choice([1, 4], rows),
        q_len=q_len,
        speculation=speculation,
        running=rng.integers(1, 300, rows),
        context_tok=rng.integers(100, 40000, rows),
        prompt_tok=rng.choice([0, 1024, 8192], rows),
        accept_len=np.minimum(q_len, 4),
        cuda_graph=rng.random(rows) < 0.7,
        cuda_graph_max_bs=rng.choice([64, 128], rows),
        nvls=rng.random(rows) < 0.5,
        kv_bytes_per_element=rng.choice([1, 2], rows),
        attention_backend=rng.choice([0, 1], rows),
    )


def test_parts_add_up_to_the_step_and_the_interval_holds_it():
    columns = MODEL.predict_columns(batch_of(500))
    np.testing.assert_allclose(sum(columns.parts.values()), columns.value_s, rtol=1e-9)
    assert np.all(columns.low_s < columns.value_s)
    assert np.all(columns.value_s < columns.high_s)
    assert set(columns.provenance) == set(columns.parts)
    assert not columns.value_s.flags.writeable


def test_a_row_is_predicted_alike_alone_and_among_others():
    batch = batch_of(60)
    together = MODEL.predict_columns(batch)
    for i in range(0, 60, 7):
        alone = MODEL.predict_columns(batch.take([i]))
        np.testing.assert_allclose(alone.value_s[0], together.value_s[i], rtol=1e-12)
        np.testing.assert_allclose(alone.high_s[0], together.high_s[i], rtol=1e-12)


def test_samples_depend_on_row_and_seed_alone():
    batch = batch_of(40)
    whole = MODEL.sample(batch, 50, 7)
    np.testing.assert_allclose(MODEL.sample(batch.take([3, 30]), 50, 7), whole[:, [3, 30]], rtol=1e-9)
    np.testing.assert_array_equal(MODEL.sample(batch, 50, 7), whole)
    assert not np.allclose(MODEL.sample(batch, 50, 8), whole)


def test_samples_agree_with_the_interval():
    batch = StepBatch.from_columns(
        tp_size=8, q_len=[1, 9, 9], speculation=[0, 2, 2], running=[64, 1, 64], context_tok=1536, prompt_tok=1024,
        accept_len=[1, 4.48, 4.48],
    )  # fmt: skip
    draws = MODEL.sample(batch, 20000, 1)
    columns = MODEL.predict_columns(batch)
    low, middle, high = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)
    np.testing.assert_allclose(middle, columns.value_s, rtol=0.03)
    np.testing.assert_allclose(low, columns.low_s, rtol=0.06)
    np.testing.assert_allclose(high, columns.high_s, rtol=0.06)


def test_samples_are_joint_so_that_twins_do_not_differ():
    """Two nearly equal candidates share their errors: the odds between them are not one half by chance."""
    batch = StepBatch.from_columns(tp_size=8, q_len=[9, 10], speculation=2, running=64, context_tok=1536)
    draws = MODEL.sample(batch, 4000, 3)
    assert np.corrcoef(draws.T)[0, 1] > 0.95
    assert np.mean(draws[:, 1] > draws[:, 0]) > 0.95


@settings(max_examples=60, deadline=None)
@given(
    running=st.integers(1, 400),
    more=st.integers(1, 200),
    q_len=st.integers(1, 40),
    context=st.integers(200, 30000),
    graph=st.booleans(),
)
def test_more_work_never_takes_less_time(running, more, q_len, context, graph):
    batch = StepBatch.from_columns(
        tp_size=8,
        q_len=[q_len, q_len, q_len + 3, q_len],
        speculation=2 if q_len > 1 else [0, 0, 2, 0],
        running=[running, running + more, running, running],
        context_tok=[context, context, context, context * 2],
        cuda_graph=graph,
    )
    step = MODEL.predict_columns(batch).value_s
    assert np.all(step[1:] >= step[0] * (1 - 1e-9))


def test_eager_hides_the_cost_of_a_tree_that_graphs_show():
    """Launch-bound, 17 tokens cost what 9 cost; under graphs a sixth more."""
    batch = StepBatch.from_columns(
        tp_size=8, q_len=[9, 17, 9, 17], speculation=2, cuda_graph=[False, False, True, True], context_tok=1536
    )
    step = MODEL.predict_columns(batch).value_s
    assert step[1] / step[0] < 1.02
    assert step[3] / step[2] > 1.12
    assert np.all(step[:2] > 2.5 * step[2:])


def test_eager_with_much_work_is_gpu_bound():
    batch = StepBatch.from_columns(tp_size=8, q_len=33, speculation=2, running=512, cuda_graph=[False, True])
    eager, graph = MODEL.predict_columns(batch).value_s
    assert eager == pytest.approx(graph, rel=0.15)


def test_a_batch_above_the_captured_sizes_runs_eager():
    batch = StepBatch.from_columns(tp_size=8, running=[64, 65], cuda_graph_max_bs=64)
    inside, above = MODEL.predict_columns(batch).value_s
    assert above > 1.5 * inside


def test_nvls_is_worth_what_was_measured():
    """FN-13: 5 to 6 % of throughput."""
    batch = StepBatch.from_columns(tp_size=8, q_len=9, speculation=2, nvls=[False, True])
    off, on = MODEL.predict_columns(batch).value_s
    assert 1.05 <= off / on <= 1.06


def test_long_contexts_widen_the_interval_of_a_verify_step_and_not_of_plain_decoding():
    batch = StepBatch.from_columns(
        tp_size=8, q_len=[9, 9, 1, 1], speculation=[2, 2, 0, 0], running=32, context_tok=[1536, 32768] * 2
    )
    columns = default_model(load_hardware("b200"), KIMI, DFLASH).predict_columns(batch)
    width = columns.high_s / columns.low_s
    assert width[1] > 1.5 * width[0]
    assert width[3] < width[1]


def test_another_attention_kernel_than_the_tables_is_doubted():
    batch = StepBatch.from_columns(tp_size=8, running=64, context_tok=16384, attention_backend=[0, 1])
    columns = default_model(load_hardware("b200"), KIMI).predict_columns(batch)
    assert columns.high_s[1] / columns.low_s[1] > columns.high_s[0] / columns.low_s[0]


def test_what_lies_beyond_tables_or_calibration_is_marked():
    batch = StepBatch.from_columns(
        tp_size=8, q_len=[9, 9, 40], speculation=2, running=[64, 600, 2000], context_tok=1536
    )
    columns = MODEL.predict_columns(batch)
    assert columns.extrapolated.tolist() == [False, True, True]
    width = np.log(columns.high_s / columns.low_s)
    assert np.all(np.diff(width) > 0)
    far = MODEL.predict_columns(StepBatch.from_columns(tp_size=8, running=64, context_tok=30000))
    assert far.extrapolated[0]


def test_a_layout_that_the_calibration_did_not_measure_is_doubted():
    """Whether a second replica halves the host's share was never measured."""
    batch = StepBatch.from_columns(tp_size=[8, 4], q_len=9, speculation=2, running=[64, 32], context_tok=1536)
    columns = MODEL.predict_columns(batch)
    width = np.log(columns.high_s / columns.low_s)
    assert width[1] > 1.3 * width[0]


def test_pcie_without_a_measured_all_reduce_gets_a_wide_interval_and_a_note():
    """FN-15 (26 tok/s) and FN-16 (65 tok/s) are not predicted from tables: what is missing is the host's all-reduce."""
    model = default_model(load_hardware("rtx_pro_6000"), KIMI)
    columns = model.predict_columns(StepBatch.from_columns(tp_size=8, context_tok=1024))
    assert columns.low_s[0] < 1 / 65 < columns.high_s[0]
    assert columns.low_s[0] < 1 / 26.5 < columns.high_s[0]
    assert any("allreduce_latency_s" in note for note in columns.notes)
    draws = model.sample(StepBatch.from_columns(tp_size=8, context_tok=1024), 4000, 1)
    assert np.quantile(draws, 0.95) > 2 * np.quantile(draws, 0.5)
