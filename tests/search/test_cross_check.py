"""The enumeration against an independent solver: CP-SAT finds the same optimum from the limits as inequalities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ortools.sat.python import cp_model

from planner.search.choose import best_row
from planner.search.request import WorkloadInput
from planner.search.solve import Solved
from tests.search.strategies import search

SCALE = 1000


def cp_optimum(solved: Solved) -> int | None:
    """Best tok/s (times 1000) over the space, limits and memory stated as linear constraints on the chosen cell."""
    table, memory, request = solved.table, solved.memory, solved.request
    hardware = request.models.hardware
    model = cp_model.CpModel()
    rows, sizes, fractions = len(table), len(table.sizes), len(table.mem_fraction_static)
    row = model.new_int_var(0, rows - 1, "row")
    size = model.new_int_var(0, sizes - 1, "size")
    fraction = model.new_int_var(0, fractions - 1, "fraction")

    def pick(index: cp_model.IntVar, values: Any, name: str) -> cp_model.IntVar:
        numbers = [int(value) for value in values]
        chosen = model.new_int_var(min(numbers), max(numbers), name)
        model.add_element(index, numbers, chosen)
        return chosen

    requests = pick(size, table.sizes.max_running_requests, "requests")
    ranks = pick(row, table.attention_dp_size, "ranks")
    replicas = pick(row, table.replicas, "replicas")
    q_len = pick(row, table.q_len, "q_len")
    graph = pick(row, table.cuda_graph, "graph")
    ep = pick(row, table.ep_size, "ep")
    heads = pick(row, request.models.model.n_heads * table.attention_dp_size // table.tp_size, "heads")
    share = pick(size, np.round(2 * table.sizes.cuda_graph_max_bs_frac), "share")

    per_rank = model.new_int_var(0, 10**6, "per_rank")
    model.add_division_equality(per_rank, requests, ranks)
    running = model.new_int_var(1, 10**6, "running")
    model.add_max_equality(running, [per_rank, 1])
    twice = model.new_int_var(0, 10**7, "twice")
    model.add_multiplication_equality(twice, [running, share])
    captured = model.new_int_var(0, 10**6, "captured")
    model.add_division_equality(captured, twice + 1, 2)
    batch = model.new_int_var(1, 10**6, "batch")
    with_graph = model.new_bool_var("with_graph")
    model.add(graph == 1).only_enforce_if(with_graph)
    model.add(graph == 0).only_enforce_if(with_graph.negated())
    model.add(batch == captured).only_enforce_if(with_graph)
    model.add(batch == running).only_enforce_if(with_graph.negated())
    verify_rows = model.new_int_var(0, 10**8, "verify_rows")
    model.add_multiplication_equality(verify_rows, [batch, q_len])
    by_heads = model.new_int_var(0, 10**9, "by_heads")
    model.add_multiplication_equality(by_heads, [verify_rows, heads])

    # Limits of sm_103 as the field notes state them.
    model.add(by_heads <= 1152 * 8)
    eight = model.new_bool_var("eight")
    model.add(heads == 8).only_enforce_if(eight)
    model.add(heads != 8).only_enforce_if(eight.negated())
    model.add(verify_rows <= 1152).only_enforce_if(eight)
    triton = [int(table.backends[code] == "triton") for code in table.attention_backend]
    on_triton = pick(row, triton, "on_triton")
    captured_triton = model.new_bool_var("captured_triton")
    model.add(on_triton + graph == 2).only_enforce_if(captured_triton)
    model.add(on_triton + graph <= 1).only_enforce_if(captured_triton.negated())
    model.add(q_len <= 9).only_enforce_if(captured_triton)
    model.add(ep <= 1)

    # Requests: all clients run, captured batches cover them.
    target = request.workload.target_c
    seats = model.new_int_var(0, 10**7, "seats")
    model.add_multiplication_equality(seats, [per_rank, ranks])
    served = model.new_int_var(0, 10**8, "served")
    model.add_multiplication_equality(served, [seats, replicas])
    model.add(served >= target)
    needed = pick(
        row, np.ceil(np.ceil(target / np.minimum(table.replicas, target)) / table.attention_dp_size), "needed"
    )
    model.add(captured >= needed).only_enforce_if(with_graph)

    # Memory in MiB.
    total = hardware.memory_bytes // 2**20
    static = pick(fraction, np.floor(table.mem_fraction_static * total), "static")
    filled = pick(
        row,
        np.ceil((memory.weight_bytes + memory.draft_bytes + memory.needed_tok * memory.kv_bytes_per_tok) / 2**20),
        "filled",
    )
    model.add(filled <= static)
    cell = model.new_int_var(0, rows * sizes - 1, "cell")
    model.add(cell == row * sizes + size)
    outside = pick(cell, np.ceil((memory.graph_bytes + memory.reserve_bytes) / 2**20).reshape(-1), "outside")
    model.add(static + outside <= total)

    rate = pick(row, np.floor(SCALE * solved.scores.tok_per_s), "rate")
    model.maximize(rate)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 60
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL
    return int(solver.value(rate))


@pytest.mark.parametrize(
    ("target_c", "pins"),
    [
        (64, {"tp_size": 8, "attention_dp_size": 1, "topk": 4}),
        (192, {"tp_size": 8, "speculation": "chain"}),
        (256, {"attention_dp_size": 1, "speculation": "chain", "attention_backend": "triton"}),
        (64, {"tp_size": 8, "budget": 12, "cuda_graph": True}),
    ],
)
def test_cp_sat_finds_the_same_optimum(target_c: int, pins: dict[str, Any]) -> None:
    solved = search("b300", WorkloadInput(target_c=target_c), pins=pins, dialect="field")
    best = best_row(solved.rank, solved.allowed)
    found = cp_optimum(solved)
    if best is None:
        assert found is None
    else:
        assert found == int(np.floor(SCALE * solved.scores.tok_per_s[best]))
