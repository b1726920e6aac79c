"""The search is exact, safe and monotone."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.data import load_drafter, load_hardware, load_limits, load_model
from planner.domain import Candidate, Limit
from planner.domain.table import CandidateTable
from planner.estimate.memory import CONTEXT_BYTES, kv_capacity_tok, memory_parts
from planner.limits import LimitContext, evaluate_limit
from planner.search.choose import TIE_FRAC, best_row, smallest_conflict, tied_rows
from planner.search.request import WorkloadInput, served_length
from planner.search.solve import CHUNKED_PREFILL_TOK, Solved
from planner.search.space import tree_capacity
from tests.search.strategies import HARDWARE, every_cell, limits, search, workloads

SMALL: dict[str, Any] = {"tp_size": 8, "ep_size": 1, "attention_dp_size": 1, "attention_backend": "triton"}


def breaks(solved: Solved, candidate: Candidate) -> list[str]:
    """Limits that a candidate breaks, evaluated one candidate at a time."""
    request = solved.request
    models = request.models
    context = LimitContext(
        models.hardware, models.model, request.workload, models.drafter.block_size if models.drafter else None
    )
    table = CandidateTable.of(candidate)
    held = [limit for limit in request.limits if limit.id not in request.lifts]
    return [limit.id for limit in held if not evaluate_limit(limit, table, context).safe.all()]


def fits(solved: Solved, candidate: Candidate) -> bool:
    """Memory, scalar form."""
    request, models = solved.request, solved.request.models
    drafted = candidate.budget > 0
    parts, capacity = memory_parts(
        models.hardware,
        models.model,
        models.drafter if drafted else None,
        tp_size=candidate.tp_size,
        attention_dp_size=candidate.attention_dp_size,
        kv_dtype=candidate.kv_cache_dtype,
        mem_fraction_static=candidate.mem_fraction_static,
        cuda_graph_max_bs=candidate.cuda_graph_max_bs,
        q_len=candidate.q_len,
        is_tree=candidate.speculation.value == "tree",
        context_length_tok=served_length(request.workload, models.model),
        attention_backend=candidate.attention_backend,
        draft_as_target=request.target.counts_draft_as_target,
        chunked_prefill_tok=CHUNKED_PREFILL_TOK,
    )
    on_replica = -(-request.workload.target_c // min(candidate.replicas, request.workload.target_c))
    needed = -(-on_replica // candidate.attention_dp_size) * (request.workload.peak_context_tok + candidate.q_len)
    total = models.hardware.memory_bytes
    outside = parts.graph_bytes + parts.reserve_bytes
    return capacity >= needed and candidate.mem_fraction_static * (total - CONTEXT_BYTES) + outside <= total


def allowed_one_by_one(solved: Solved, candidate: Candidate) -> bool:
    workload = solved.request.workload
    ranks = candidate.attention_dp_size
    served = candidate.max_running_requests // ranks * ranks * candidate.replicas
    on_replica = math.ceil(workload.target_c / min(candidate.replicas, workload.target_c))
    on_rank = math.ceil(on_replica / ranks)
    covered = not candidate.cuda_graph or candidate.cuda_graph_max_bs >= on_rank
    return (
        served >= workload.target_c
        and covered
        and candidate.kv_cache_dtype == "bf16"
        and fits(solved, candidate)
        and not breaks(solved, candidate)
    )


@pytest.mark.parametrize(
    ("hw", "target_c", "pins"),
    [
        ("b300", 64, {**SMALL, "topk": 4, "budget": 8}),
        ("b300", 128, {**SMALL, "speculation": "chain"}),
        ("b300", 192, {**SMALL, "speculation": "chain", "budget": 5}),
        ("rtx_pro_6000", 16, {**SMALL, "topk": 2, "budget": 8}),
        ("h200", 32, {"speculation": "off", "attention_backend": "triton"}),
    ],
)
def test_enumeration_equals_brute_force(hw: str, target_c: int, pins: dict[str, Any]) -> None:
    """Every candidate of a small space, judged one by one with the scalar functions: same mask, same optimum."""
    solved = search(hw, WorkloadInput(target_c=target_c), pins=pins, dialect="field")
    cells = every_cell(solved)
    expected = np.array([allowed_one_by_one(solved, candidate) for candidate in cells]).reshape(solved.allowed.shape)
    assert np.array_equal(solved.allowed, expected)
    rate = np.repeat(solved.scores.tok_per_s, len(cells) // len(solved.table))
    if expected.any():
        best = best_row(solved.rank, solved.allowed)
        assert best is not None
        assert solved.scores.tok_per_s[best] == rate[expected.reshape(-1)].max()
    else:
        assert solved.choice is None


def test_tie_order_by_brute_force() -> None:
    """Nearest to a measured run, then fewer rows, then the smallest max_running_requests at or above the floor."""
    solved = search("b300", WorkloadInput(target_c=64), pins=SMALL, dialect="field")
    assert solved.choice is not None
    table = solved.table
    best = best_row(solved.rank, solved.allowed)
    assert best is not None
    measured = solved.request.measured[0]
    keys = []
    for row in tied_rows(solved.rank, solved.allowed):
        for size in np.flatnonzero(solved.allowed[row].any(axis=1)):
            found = table.candidate(int(row), int(size), 0, dialect="field", engine_version=None)
            names = ("tp_size", "ep_size", "attention_dp_size", "replicas", "speculation", "cuda_graph")
            names += ("enable_nccl_nvls", "allreduce_fusion", "attention_backend", "kv_cache_dtype")
            apart = sum(getattr(found, name) != getattr(run, name) for run in [measured] for name in names)
            near = min(
                sum(getattr(found, name) != getattr(run, name) for name in names)
                + 0.5 * (found.topk != run.topk)
                + abs(np.log2(found.q_len / run.q_len))
                for run in solved.request.measured
            )
            assert apart >= 0
            keys.append((round(near, 9), found.verify_rows_per_rank, found.max_running_requests))
    chosen = solved.candidate(solved.choice)
    assert min(keys)[1:] == (chosen.verify_rows_per_rank, chosen.max_running_requests)
    assert solved.rank[solved.choice.row] >= (1 - TIE_FRAC) * solved.rank[best]


@settings(max_examples=40)
@given(
    hw=st.sampled_from(HARDWARE),
    workload=workloads(),
    extra=limits(),
    dialect=st.sampled_from(("field", "pr29907", "upstream")),
)
def test_a_choice_breaks_no_limit(hw: str, workload: WorkloadInput, extra: Limit, dialect: str) -> None:
    """For any hardware, workload and limits: what is chosen passes every limit on the known-good side, one by one."""
    solved = search(hw, workload, extra=(extra,), dialect=dialect)
    if solved.choice is None:
        assert not solved.allowed.any()
        return
    candidate = solved.candidate(solved.choice)
    assert breaks(solved, candidate) == []
    assert candidate.tp_size * candidate.replicas == solved.request.models.hardware.n_gpus
    if workload.needs and dialect != "upstream":
        assert candidate.speculation.value != "tree"
    if not workload.allow_queue:
        assert candidate.max_running_requests * candidate.replicas >= int(str(workload.target_c))


@settings(max_examples=25)
@given(hw=st.sampled_from(HARDWARE), workload=workloads())
def test_lifting_a_limit_never_lowers_the_optimum(hw: str, workload: WorkloadInput) -> None:
    solved = search(hw, workload, dialect="field")
    base = best_row(solved.rank, solved.allowed)
    floor = 0.0 if base is None else float(solved.rank[base])
    for item in solved.constraints.items:
        row = best_row(solved.rank, solved.constraints.mask(without=(item.id,)))
        assert row is None or float(solved.rank[row]) >= floor


@settings(max_examples=25)
@given(hw=st.sampled_from(HARDWARE), workload=workloads())
def test_throughput_never_exceeds_its_cap(hw: str, workload: WorkloadInput) -> None:
    """tok/s <= C x accept cap / step, for every candidate."""
    solved = search(hw, workload, dialect="field")
    scores = solved.scores
    drafter = solved.request.models.drafter
    assert drafter is not None
    cap = np.where(solved.table.budget > 0, drafter.max_accept_len, 1)
    bound = solved.request.workload.target_c * cap / scores.step.value_s
    assert np.all(scores.tok_per_s <= bound * (1 + 1e-9))
    assert np.all(scores.accept.value <= np.minimum(cap, solved.table.q_len) + 1e-9)
    assert np.all(scores.accept.low <= scores.accept.value + 1e-9)


@given(
    fraction=st.floats(0.5, 0.95),
    more=st.floats(1.0, 3.0),
    weights=st.floats(0, 300e9),
    outside=st.floats(0, 50e9),
    per_tok=st.floats(1e3, 1e6),
)
def test_more_memory_never_lowers_kv_capacity(
    fraction: float, more: float, weights: float, outside: float, per_tok: float
) -> None:
    small = load_hardware("h200")
    large = small.replace(memory_bytes=int(small.memory_bytes * more))
    capacity = [
        float(
            kv_capacity_tok(
                hardware,
                mem_fraction_static=fraction,
                weight_bytes=weights,
                outside_bytes=outside,
                kv_bytes_per_tok=per_tok,
            )
        )
        for hardware in (small, large)
    ]
    assert 0 <= capacity[0] <= capacity[1]


def test_row_limit_binds_where_it_must() -> None:
    """At C = 192 a tree of 8 would need 1728 rows: the limit of 1152 leaves budgets up to 5 on TP8."""
    for target_c in (128, 192, 256, 512):
        solved = search(
            "b300", WorkloadInput(target_c=target_c), pins={"tp_size": 8, "cuda_graph": True}, dialect="field"
        )
        assert solved.choice is not None
        candidate = solved.candidate(solved.choice)
        rows = candidate.verify_rows_per_rank * 64 // candidate.tp_size * candidate.attention_dp_size
        assert rows <= 1152 * 8
        open_rows = solved.allowed.any(axis=(1, 2)) & (solved.table.attention_dp_size == 1)
        assert solved.table.q_len[open_rows].max() <= 1152 // target_c


def test_edge_enters_the_untested_interval_only_when_asked() -> None:
    pins = {**SMALL, "budget": 11, "cuda_graph": True}
    assert search("b300", pins=pins, dialect="field").choice is None
    edge = search("b300", pins=pins, dialect="field", risk="edge")
    assert edge.choice is not None
    beyond = {**SMALL, "budget": 12, "cuda_graph": True}
    assert search("b300", pins=beyond, dialect="field", risk="edge").choice is None


def test_conflict_is_smallest() -> None:
    """Together infeasible, and feasible when any one member is left out."""
    work = WorkloadInput(target_c=512, max_tpot_ms=4)
    solved = search("b300", work, dialect="field")
    assert solved.choice is None
    ids = smallest_conflict(solved.constraints)
    assert not solved.constraints.mask(only=ids).any()
    for id_ in ids:
        assert solved.constraints.mask(only=[other for other in ids if other != id_]).any()


def test_queueing_serves_more_clients_than_fit() -> None:
    work = WorkloadInput(target_c=512, context=16384, output_len=1024)
    assert search("rtx_pro_6000", work).choice is None
    queued = search("rtx_pro_6000", WorkloadInput(target_c=512, context=16384, allow_queue=True))
    assert queued.choice is not None
    assert queued.scores.n_running < 512


def test_fp8_kv_only_where_it_is_needed() -> None:
    """FP8 KV changes answers and nothing says by how much: BF16 stays unless it does not fit or FP8 is asked for."""
    short = search("rtx_pro_6000", WorkloadInput(target_c=64))
    assert short.choice is not None
    assert short.candidate(short.choice).kv_cache_dtype == "bf16"
    long = search("rtx_pro_6000", WorkloadInput(target_c=128), pins={"attention_dp_size": 1})
    assert long.choice is not None
    assert long.candidate(long.choice).kv_cache_dtype == "fp8_e4m3"


@pytest.mark.parametrize(("block", "topk"), list(itertools.product((2, 4, 8, 16), (1, 2, 4, 8))))
def test_tree_capacity_counts_nodes(block: int, topk: int) -> None:
    assert tree_capacity(block, topk) == sum(topk**depth for depth in range(1, block))


def test_same_input_same_choice() -> None:
    first, second = (search("b300", WorkloadInput(target_c=32), dialect="field") for _ in range(2))
    assert first.choice == second.choice
    assert np.array_equal(first.rank, second.rank)


def test_kimi_fits_where_it_should() -> None:
    """76 GB a rank at TP8 (weights and draft) and about 2.2 M KV tokens a rank on B300 (ideal answer of the design)."""
    parts, capacity = memory_parts(
        load_hardware("b300"),
        load_model("kimi-k2.6"),
        load_drafter("kimi-k2.6-dflash"),
        tp_size=8,
        attention_dp_size=1,
        kv_dtype="bf16",
        mem_fraction_static=0.82,
        cuda_graph_max_bs=64,
        q_len=9,
        is_tree=True,
        context_length_tok=32768,
    )
    assert parts.weights_bytes + parts.draft_bytes == pytest.approx(76e9, rel=0.01)
    assert capacity == pytest.approx(2.2e6, rel=0.03)
    assert {limit.id for limit in load_limits()} >= {"B300-MLA-VERIFY-ROWS", "B300-GRAPH-Q-LEN"}
