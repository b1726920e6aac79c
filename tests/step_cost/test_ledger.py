"""From ledger observations and benchmark records to rows."""

from __future__ import annotations

import pytest

from planner.domain import Candidate, Observation, Outcome, Speculation
from planner.errors import InputError
from planner.estimate.step_cost import fit_step_cost
from planner.estimate.step_cost.ledger import row_of_benchmark, row_of_observation

TREE = Candidate(
    tp_size=8,
    speculation=Speculation.TREE,
    budget=8,
    topk=4,
    q_len=9,
    max_running_requests=128,
    cuda_graph_max_bs=128,
    attention_backend="triton",
    mem_fraction_static=0.85,
)


def observation(**fields):
    base = {
        "id": "o1",
        "hardware": "b300",
        "model": "kimi-k2.6",
        "drafter": "kimi-k2.6-dflash",
        "engine_version": "0.5.23",
        "candidate": TREE,
        "concurrency": 64,
        "context_tok": 1024,
        "output_tok": 1024,
        "source": "test",
    }
    return Observation(**(base | fields))


@pytest.mark.parametrize(
    ("fields", "step_s"),
    [
        ({"step_s": 0.08, "tok_per_s": 1.0, "accept_len": 4.0}, 0.08),
        ({"tpot_s": 0.02, "accept_len": 4.0}, 0.08),
        ({"tok_per_s": 3200.0, "accept_len": 4.0}, 0.08),
    ],
)
def test_steps_from_what_was_measured(fields, step_s):
    row = row_of_observation(observation(**fields))
    assert row["step_s"] == pytest.approx(step_s)
    assert row["q_len"] == 9
    assert row["kind"] == "tree"
    fit = fit_step_cost([row], hw="b300", model="kimi-k2.6")
    assert fit.drafter.id == "kimi-k2.6-dflash"


@pytest.mark.parametrize(
    "fields",
    [
        {"tok_per_s": 3200.0},
        {},
        {"step_s": 0.08, "outcome": Outcome(cause="cuda_illegal_address")},
        {"step_s": 0.08, "candidate": None},
    ],
)
def test_no_row_where_there_is_no_step(fields):
    assert row_of_observation(observation(**fields)) is None


RECORD = {
    "mean_tpot_ms": 20.0,
    "completed": 10,
    "total_input_tokens": 10240,
    "total_output_tokens": 5120,
    "max_concurrency": 64,
    "accept_length": 4.0,
    "server_info": {
        "version": "0.5.23",
        "tp_size": 8,
        "speculative_algorithm": "DFLASH",
        "speculative_num_draft_tokens": 8,
        "speculative_eagle_topk": 1,
    },
}


def test_a_benchmark_line_becomes_a_row():
    row = row_of_benchmark(RECORD)
    assert row["step_s"] == pytest.approx(0.08)
    assert (row["kind"], row["q_len"], row["context_tok"], row["output_tok"]) == ("chain", 8, 1024, 512)
    assert fit_step_cost([row], hw="b300", model="kimi-k2.6").posterior is not None


def test_plain_decoding_needs_no_accept_length():
    record = {**RECORD, "accept_length": None, "server_info": {"tp_size": 8}}
    row = row_of_benchmark(record)
    assert row["step_s"] == pytest.approx(0.02)
    assert row["kind"] == "off"


def test_what_a_record_lacks_is_named_all_at_once():
    with pytest.raises(InputError) as caught:
        row_of_benchmark({**RECORD, "mean_tpot_ms": None, "completed": 0, "accept_length": None}, name="bench.jsonl")
    text = str(caught.value)
    assert "mean_tpot_ms" in text
    assert "completed" in text
    assert "speculation without accept_length" in text


@pytest.mark.parametrize(
    ("said", "overlap"), [(False, True), (True, False), ("False", True), ("true", False), ("sometimes", "sometimes")]
)
def test_overlap_and_draft_steps_are_what_the_server_said(said, overlap):
    effective = (("disable_overlap_schedule", said), ("speculative_num_steps", 4))
    row = row_of_observation(observation(step_s=0.08, accept_len=4.0, effective=effective))
    assert (row["overlap"], row["draft_steps"]) == (overlap, 4)
    if said == "sometimes":
        with pytest.raises(InputError, match="sometimes"):
            fit_step_cost([row], hw="b300", model="kimi-k2.6")
