"""Limit data: the scalar and the array form are one, and scope, interval and status mean what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.data import load_hardware, load_limits, load_model
from planner.data.field_notes import FieldRun, field_runs
from planner.domain import QUANTITIES, SETTINGS, Candidate, Limit, Workload
from planner.domain.table import CandidateTable
from planner.limits import LimitContext, evaluate_limit, holds_in_plan, quantity

BY_ID = {limit.id: limit for limit in load_limits()}
CONTEXT = LimitContext(load_hardware("b300"), load_model("kimi-k2.6"), Workload(target_c=64), block_size=8)


def candidate(**changes: object) -> Candidate:
    base = {
        "tp_size": 8,
        "speculation": "tree",
        "budget": 8,
        "topk": 4,
        "q_len": 9,
        "max_running_requests": 128,
        "cuda_graph_max_bs": 128,
        "enable_nccl_nvls": True,
        "attention_backend": "triton",
        "mem_fraction_static": 0.85,
    }
    return Candidate(**{**base, **changes})


def safe(limit: Limit, value: Candidate, context: LimitContext = CONTEXT) -> bool:
    return bool(evaluate_limit(limit, CandidateTable.of(value), context).safe.all())


@pytest.mark.parametrize("run", [run for run in field_runs() if run.hardware == "b300"], ids=lambda run: run.id)
def test_field_notes_are_answered_right(run: FieldRun) -> None:
    """FN-01 to FN-18: what ran is allowed; what failed is refused, by exactly the limits that the notes imply."""
    broken = {limit.id for limit in BY_ID.values() if not safe(limit, run.candidate)}
    expected = set(run.limits)
    if "B300-MLA-VERIFY-ROWS" in expected:
        expected.add("B300-MLA-VERIFY-ROWS-X-HEADS")
    assert broken == expected


def test_row_limit_is_an_interval() -> None:
    limit = BY_ID["B300-MLA-VERIFY-ROWS"]
    for requests, is_safe, is_edge in ((128, True, True), (129, False, True), (241, False, True), (242, False, False)):
        table = CandidateTable.of(candidate(max_running_requests=requests, cuda_graph_max_bs=requests))
        verdict = evaluate_limit(limit, table, CONTEXT)
        assert (bool(verdict.safe.all()), bool(verdict.edge.all())) == (is_safe, is_edge), requests


def test_q_len_limit_is_silent_without_graphs_and_on_other_paths() -> None:
    limit = BY_ID["B300-GRAPH-Q-LEN"]
    wide = {"budget": 16, "q_len": 17, "max_running_requests": 8, "cuda_graph_max_bs": 8}
    assert not safe(limit, candidate(**wide))
    assert safe(limit, candidate(**{**wide, "cuda_graph": False, "cuda_graph_max_bs": 0}))
    assert safe(limit, candidate(**{**wide, "attention_backend": "trtllm_mla"}))
    for other in ("b200", "rtx_pro_6000", "h200"):
        context = LimitContext(load_hardware(other), CONTEXT.model, CONTEXT.workload, block_size=8)
        assert safe(limit, candidate(**wide), context), f"a limit of sm_103 spoke on {other}"


def test_attention_dp_takes_the_conservative_reading() -> None:
    """With 64 heads on a rank the row limit itself is silent; rows x heads <= 1152 x 8 stands in."""
    many = candidate(attention_dp_size=8, max_running_requests=256, cuda_graph_max_bs=32)
    assert safe(BY_ID["B300-MLA-VERIFY-ROWS"], many)
    assert not safe(BY_ID["B300-MLA-VERIFY-ROWS-X-HEADS"], many)
    assert safe(BY_ID["B300-MLA-VERIFY-ROWS-X-HEADS"], many.replace(max_running_requests=128, cuda_graph_max_bs=16))


def test_ep_between_good_and_bad_is_untested() -> None:
    limit = BY_ID["B300-EP8-GRAPHS"]
    four = evaluate_limit(limit, CandidateTable.of(candidate(tp_size=4, ep_size=4, replicas=2)), CONTEXT)
    assert not four.safe.all()
    assert four.edge.all()


def test_nvls_needs_the_links() -> None:
    pcie = LimitContext(load_hardware("rtx_pro_6000"), CONTEXT.model, CONTEXT.workload, block_size=8)
    assert not safe(BY_ID["NVLS-NEEDS-NVLINK"], candidate(), pcie)
    assert safe(BY_ID["NVLS-NEEDS-NVLINK"], candidate(enable_nccl_nvls=False), pcie)


def test_accept_length_above_block_size_is_caught() -> None:
    limit = BY_ID["ACCEPT-LEN-AT-MOST-BLOCK"]
    context = LimitContext(CONTEXT.hardware, CONTEXT.model, CONTEXT.workload, 8, np.array([8.5]))
    assert not safe(limit, candidate(), context)
    assert safe(limit, candidate(), LimitContext(CONTEXT.hardware, CONTEXT.model, CONTEXT.workload, 8, np.array([8.0])))


@pytest.mark.parametrize(
    ("changes", "version", "holds"),
    [
        ({}, "0.5.23", True),
        ({}, None, True),
        ({"status": "retired"}, "0.5.23", False),
        ({"status": "fixed_in", "fixed_in": "0.5.20"}, "0.5.19", True),
        ({"status": "fixed_in", "fixed_in": "0.5.20"}, "0.5.20", False),
        ({"status": "fixed_in", "fixed_in": "0.5.20"}, None, True),
    ],
)
def test_a_limit_holds_on_every_version_until_it_is_mended(
    changes: dict[str, object], version: str | None, holds: bool
) -> None:
    assert holds_in_plan(BY_ID["B300-GRAPH-Q-LEN"].replace(**changes), version) is holds


def test_every_named_quantity_and_setting_is_computed() -> None:
    table = CandidateTable.of(candidate())
    for name in QUANTITIES:
        assert quantity(name, table, CONTEXT).ndim == 3
    for name in SETTINGS:
        limit = BY_ID["NVLS-NEEDS-NVLINK"].replace(settings=(f"{name}=1", "nvls=true"))
        assert evaluate_limit(limit, table, CONTEXT).safe.shape[0] == 1


@given(
    requests=st.integers(1, 4096),
    budget=st.integers(0, 64),
    dp=st.sampled_from((1, 2, 4, 8)),
    graph=st.booleans(),
    share=st.floats(0.01, 1.0),
)
def test_rows_of_the_table_are_rows_of_the_candidate(
    requests: int, budget: int, dp: int, graph: bool, share: float
) -> None:
    """One definition: what the search masks is what a review computes for the same candidate."""
    running = max(1, requests // dp)
    value = candidate(
        attention_dp_size=dp,
        speculation="tree" if budget else "off",
        budget=budget,
        q_len=budget + 1,
        topk=4 if budget else 0,
        max_running_requests=requests,
        cuda_graph=graph,
        cuda_graph_max_bs=int(np.ceil(running * share)) if graph else 0,
    )
    assert int(CandidateTable.of(value).verify_rows[0, 0]) == value.verify_rows_per_rank
