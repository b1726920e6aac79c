"""Parts of a step: tables where they reach, data sheet beyond, in every parallel layout."""

from __future__ import annotations

import numpy as np
import pytest

from planner.data import load_drafter, load_hardware, load_model
from planner.domain import Provenance, Source, WeightDtype
from planner.estimate.step_cost.costs import KernelCosts, captured_batch
from planner.estimate.step_cost.default import kernel_table

B300, KIMI = load_hardware("b300"), load_model("kimi-k2.6")
COSTS = KernelCosts(B300, KIMI, table=kernel_table("b300_sxm"))
TOKENS = np.array([1.0, 9.0, 64.0, 576.0, 1152.0, 5000.0])


@pytest.mark.parametrize(
    ("running", "speculative", "graph_max_bs", "captured"),
    [
        (1, True, 128, 1),
        (9, True, 128, 10),
        (33, True, 128, 40),
        (64, True, 128, 64),
        (65, True, 128, 72),
        (127, True, 127, 127),
        (3, False, 128, 4),
        (13, False, 128, 16),
        (100, False, 128, 104),
        (126, False, 126, 126),
    ],
)
def test_a_batch_is_padded_to_the_next_captured_size(running, speculative, graph_max_bs, captured):
    found = captured_batch(np.array([float(running)]), np.array([speculative]), np.array([float(graph_max_bs)]))
    assert found.tolist() == [captured]


def test_kernels_of_an_autoregressive_step_on_b300():
    """Sums of table entries at C = 1, 1K context: experts 2.2 ms, all-reduce 0.65 ms, attention 0.8 ms."""
    one = np.ones(1)
    assert COSTS.moe_s(one, 8, 1)[0][0] == pytest.approx(2.2e-3, rel=0.03)
    assert COSTS.comm_s(one, 8, 1, graph=True)[0] == pytest.approx(0.65e-3, rel=0.03)
    assert COSTS.attention_s(one, np.array([1024.0]), 8, 1, 2.0)[0][0] == pytest.approx(0.77e-3, rel=0.03)


def test_more_draft_tokens_touch_more_experts():
    """Budget 16 costs over half more than budget 8 in the experts: a step is not constant in q_len."""
    nine, seventeen = COSTS.moe_s(np.array([9.0, 17.0]), 8, 1)[0]
    assert 1.4 < seventeen / nine < 1.7


@pytest.mark.parametrize(
    ("tp", "ep", "dp"), [(8, 1, 1), (8, 8, 1), (8, 4, 1), (8, 1, 8), (8, 8, 8), (4, 1, 1), (4, 4, 4), (2, 1, 1)]
)
def test_every_layout_is_priced_and_grows_with_tokens(tp, ep, dp):
    for part in (
        COSTS.moe_s(TOKENS, tp, ep)[0],
        COSTS.dense_s(TOKENS, tp, dp),
        COSTS.comm_s(TOKENS, tp, dp, graph=True),
        COSTS.attention_s(TOKENS, np.full(TOKENS.shape, 2000.0), tp, dp, 2.0)[0],
    ):
        assert np.all(np.isfinite(part))
        assert np.all(part > 0)
        assert np.all(np.diff(part) >= -1e-12)


def test_attention_dp_reads_each_kv_once_and_has_more_heads_a_rank():
    batch, context = np.array([64.0]), np.array([16384.0])
    replicated = COSTS.attention_s(batch, context, 8, 1, 2.0)[0]
    divided = COSTS.attention_s(batch / 8, context, 8, 8, 2.0)[0]
    assert divided < replicated
    assert COSTS.kv_read_s(batch / 8, context, 8, 8, 2.0) == pytest.approx(
        COSTS.kv_read_s(batch, context, 8, 1, 2.0) / 8
    )


def test_eager_collectives_are_not_faster_than_captured_ones():
    eager, graph = (COSTS.comm_s(TOKENS, 8, 1, graph=captured) for captured in (False, True))
    assert np.all(eager >= graph)


def test_fp8_cache_halves_the_read():
    args = (np.array([64.0]), np.array([4096.0]), 8, 1)
    assert COSTS.kv_read_s(*args, 1.0) * 2 == pytest.approx(COSTS.kv_read_s(*args, 2.0))
    assert COSTS.attention_s(*args, 1.0)[0] < COSTS.attention_s(*args, 2.0)[0]


def test_prefill_is_none_without_a_prompt_and_grows_faster_than_the_prompt_beyond_the_table():
    prompt = np.array([0.0, 1024.0, 8192.0, 131072.0, 262144.0])
    seconds = COSTS.prefill_s(prompt, 8, 1, 1)
    assert seconds[0] == 0
    assert np.all(np.diff(seconds) > 0)
    assert seconds[4] > 2 * seconds[3]


def test_data_sheet_stands_in_where_there_is_no_table():
    """INT4 experts on sm_103 are the worst case of the roofline: faster than measured, and the doubt says so."""
    bare = KernelCosts(B300, KIMI, table=None)
    seconds, doubt, _ = bare.moe_s(TOKENS, 8, 1)
    error = np.log(seconds / COSTS.moe_s(TOKENS, 8, 1)[0])
    assert np.all(np.abs(error) < 3 * doubt)
    assert np.all(np.abs(np.log(bare.dense_s(TOKENS, 8, 1) / COSTS.dense_s(TOKENS, 8, 1))) < np.log(1.6))
    assert bare.grounds(8, 1, 1, 2.0) == dict.fromkeys(
        ("moe", "dense", "all_reduce", "attention"), Provenance.DATASHEET
    )
    assert COSTS.grounds(8, 1, 1, 2.0) == dict.fromkeys(("moe", "dense", "all_reduce", "attention"), Provenance.TABLE)


def test_shape_without_a_table_says_so():
    odd = KIMI.replace(n_experts=100)
    assert KernelCosts(B300, odd, table=kernel_table("b300_sxm")).grounds(8, 1, 1, 2.0)["moe"] is Provenance.DATASHEET


def test_formats_differ():
    faster = KernelCosts(B300, KIMI.replace(expert_dtype=WeightDtype.NVFP4), table=kernel_table("b300_sxm"))
    assert np.all(faster.moe_s(TOKENS, 8, 1)[0] < COSTS.moe_s(TOKENS, 8, 1)[0])


def test_measured_all_reduce_of_the_host_replaces_the_tables_floor():
    """FN-15 and FN-16 follow from the host: 240 us and 48 us at 14 KB, where the table has 28 us."""
    pcie = load_hardware("rtx_pro_6000")
    table = kernel_table("rtx_pro_6000_server")
    slow = pcie.replace(
        allreduce_latency_s=240e-6,
        sources=(*pcie.sources, Source(field="allreduce_latency_s", kind="measured", ref="test")),
    )
    n_bytes = np.array([16384.0])
    assert KernelCosts(pcie, KIMI, table=table).links_unmeasured
    measured = KernelCosts(slow, KIMI, table=table)
    assert not measured.links_unmeasured
    assert measured.collective_s("all_reduce", 8, n_bytes, graph=True) == pytest.approx(240e-6)
    assert measured.collective_s("all_reduce", 8, n_bytes * 64, graph=True) > 240e-6


def drafts(algorithm, *, q_len, topk, steps, context=1024.0, walks=False, running=8.0):
    drafter = load_drafter("kimi-k2.6-dflash").replace(algorithm=algorithm)
    costs = KernelCosts(B300, KIMI, table=kernel_table("b300_sxm"), drafter=drafter)
    n, column = costs.draft_steps(np.array([float(q_len)]), np.array([float(steps)])), np.array([running])
    seconds = costs.draft_s(
        column,
        8,
        q_len=np.array([float(q_len)]),
        topk=np.array([float(topk)]),
        steps=n,
        context_tok=np.array([context]),
        walks=np.array([walks]),
    )
    return float(n[0]), float(seconds[0])


def test_a_block_drafter_runs_once_and_an_autoregressive_one_once_a_step():
    assert drafts("DFLASH", q_len=8, topk=1, steps=7)[0] == 1
    assert drafts("EAGLE3", q_len=8, topk=1, steps=3)[0] == 3
    assert drafts("EAGLE3", q_len=5, topk=1, steps=0)[0] == 4
    assert drafts("EAGLE3", q_len=33, topk=4, steps=0)[0] == 7
    one, three = (drafts("EAGLE3", q_len=8, topk=1, steps=steps)[1] for steps in (1, 3))
    assert 2.5 < three / one < 3.2
    assert drafts("DFLASH", q_len=8, topk=1, steps=7)[1] == drafts("DFLASH", q_len=8, topk=1, steps=7, context=9e4)[1]


def test_each_branch_reads_the_drafts_cache_where_triton_walks():
    """docs/h200.md: a draft of 28 layers was priced at half without it."""
    many = {"q_len": 9, "steps": 4, "running": 64.0, "walks": True}
    near, far = (drafts("EAGLE3", topk=8, context=c, **many)[1] for c in (1e3, 8e3))
    narrow = drafts("EAGLE3", topk=1, context=8e3, **many)[1]
    assert far > 1.5 * near
    assert far > 1.5 * narrow
    assert drafts("EAGLE3", topk=8, context=8e3, **(many | {"walks": False}))[1] < far


def test_overlap_hides_host_time_of_speculative_steps_alone():
    from planner.estimate.step_cost.batch import StepBatch
    from planner.estimate.step_cost.default import default_model

    model = default_model(B300, KIMI, load_drafter("kimi-k2.6-dflash"))
    rows = {"tp_size": 8, "running": 32, "q_len": [8, 8, 1, 1], "speculation": [1, 1, 0, 0], "overlap": [1, 0, 1, 0]}
    on, off, plain, plain_off = model.predict_columns(StepBatch.from_columns(**rows)).value_s
    assert 0.002 < off - on < 0.012
    assert plain == plain_off
