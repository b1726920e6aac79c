"""Rows as people write them: defaults, spellings, faults."""

from __future__ import annotations

import pytest

from planner.data import load_drafter, load_hardware, load_model
from planner.domain import WeightDtype
from planner.errors import InputError
from planner.estimate.step_cost.observations import quoted_model
from planner.estimate.step_cost.rows import default_tp_size, framework_of, read_rows

B300, KIMI = load_hardware("b300"), load_model("kimi-k2.6")


def group_of(row, **options):
    (group,) = read_rows([row], hardware=B300, model=KIMI, **options)
    return group


@pytest.mark.parametrize(
    ("version", "framework"),
    [
        ("0.5.23", "sglang"),
        ("v0.5.12.post1", "sglang"),
        ("vllm 0.17.0", "vllm"),
        ("0.17.0", "vllm"),
        ("SGLang 0.5.16", "sglang"),
        ("2026-05", "sglang"),
    ],
)
def test_framework_from_the_engine_version(version, framework):
    assert framework_of(version) == framework


def test_an_empty_row_is_plain_decoding_on_the_whole_box_when_one_gpu_is_too_small():
    batch = group_of({}).batch
    assert batch.tp_size.tolist() == [8]
    assert batch.q_len.tolist() == [1]
    assert batch.context_tok.tolist() == [1024]
    assert batch.prompt_tok.tolist() == [0]
    assert default_tp_size(load_hardware("h100"), quoted_model("qwen3-4b")) == 1


def test_context_is_the_prompt_and_the_mean_length_adds_half_the_output():
    batch = group_of({"context_tok": 1000, "output_tok": 500, "prefix_hit_frac": 0.25}).batch
    assert batch.context_tok.tolist() == [1250]
    assert batch.prompt_tok.tolist() == [750]


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"q_len": 1}, 0),
        ({"q_len": 9, "draft": "kimi-k2.6-dflash"}, 2),
        ({"q_len": 8, "draft": "kimi-k2.6-dflash"}, 1),
        ({"q_len": 8}, 2),
        ({"q_len": 8, "kind": "chain"}, 1),
    ],
)
def test_kind_of_step(row, kind):
    assert group_of(row, drafter=load_drafter("kimi-k2.6-dflash")).batch.speculation.tolist() == [kind]


def test_text_from_a_csv_is_read_as_numbers_and_blanks_as_absent():
    batch = group_of({"tp_size": "4", "q_len": "", "concurrency": "16", "cuda_graph": "False", "kv_dtype": "fp8"}).batch
    assert batch.tp_size.tolist() == [4]
    assert batch.running.tolist() == [16]
    assert not batch.cuda_graph[0]
    assert batch.kv_bytes_per_element.tolist() == [1]


def test_weight_formats_make_groups():
    rows = [{"weight_dtype": "nvfp4"}, {"weight_dtype": "int4_wo"}, {}, {"engine_version": "vllm 0.17"}]
    groups = read_rows(rows, hardware=B300, model=KIMI)
    assert [group.index for group in groups] == [(0,), (1, 2), (3,)]
    assert groups[0].model.expert_dtype is WeightDtype.NVFP4
    assert groups[0].model.dense_dtype is WeightDtype.BF16


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"q_len": 0}, "q_len: row 0: 0 must be a whole number of at least 1"),
        ({"q_len": 2.5}, "whole number"),
        ({"concurrency": "many"}, "'many' is not a number"),
        ({"concurrency": float("nan")}, "not a number"),
        ({"concurrency": -3}, "must be a number of at least"),
        ({"tp_size": True}, "not a number"),
        ({"cuda_graph": "maybe"}, "neither true nor false"),
        ({"weight_dtype": "int3"}, "'int3' is unknown; did you mean int4"),
        ({"kv_dtype": "fp9"}, "unknown; did you mean fp8"),
        ({"context_tokens": 5}, "unknown field; write context_tok"),
        ({"tp": 8}, "unknown field; write tp_size"),
        ({"tpot_ms": 12}, "unknown field; write step_s, in seconds"),
        ({"kind": "tree", "q_len": 1}, "a tree verifies more than one token a step"),
    ],
)
def test_faults_are_named(row, text):
    with pytest.raises(InputError) as caught:
        read_rows([row], hardware=B300, model=KIMI)
    assert text in str(caught.value)


def test_all_faults_of_all_rows_come_at_once():
    rows = [{"q_len": 0, "id": "first"}, {}, {"tp": 8}, 7]
    with pytest.raises(InputError) as caught:
        read_rows(rows, hardware=B300, model=KIMI, need_step=True)
    text = str(caught.value)
    assert "row 0 (first)" in text
    assert "row 2" in text
    assert "row 3 is a int" in text
    assert text.count("a measured step_s in seconds") == 3


def test_columns_that_belong_to_the_caller_are_let_through():
    assert group_of({"ttft_ms": 12, "workflow": "x"}).batch.n_rows == 1


@pytest.mark.parametrize(
    ("version", "kind", "block", "overlap"),
    [
        ("sglang 0.5.12.post1", "chain", True, 0.0),
        ("sglang 0.5.13", "chain", True, 0.0),
        ("sglang 0.5.14", "chain", True, 1.0),
        ("sglang 0.5.23", "chain", True, 1.0),
        ("sglang 0.5.23", "tree", True, 0.0),
        ("sglang 0.5.12.post1", "chain", False, 1.0),
        ("sglang 0.5.12.post1", "tree", False, 0.0),
        ("sglang 0.5.15.post1", "tree", False, 1.0),
        ("", "tree", False, 1.0),
    ],
)
def test_overlap_scheduling_follows_the_release(version, kind, block, overlap):
    drafter = load_drafter("kimi-k2.6-dflash").replace(algorithm="DFLASH" if block else "EAGLE3")
    row = {"q_len": 8, "kind": kind, "draft": drafter.id, "engine_version": version}
    assert group_of(row, drafter=drafter).batch.overlap.tolist() == [overlap]
    said = group_of(row | {"overlap": not overlap}, drafter=drafter).batch.overlap.tolist()
    assert said == [1.0 - overlap]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"q_len": 9, "kind": "tree", "draft": "x", "draft_steps": 9}, "draft_steps"),
        ({"q_len": 9, "kind": "tree", "draft": "x", "topk": 1000}, "topk"),
        ({"q_len": 9, "kind": "chain", "draft": "x", "topk": 8}, "topk"),
        ({"q_len": 9, "kind": "tree", "draft": "x", "overlap": "perhaps"}, "overlap"),
        ({"q_len": 9, "speculative_num_steps": 4}, "speculative_num_steps"),
        ({"q_len": 9, "disable_overlap_schedule": "true"}, "disable_overlap_schedule"),
        ({"q_len": 9, "top_k": 4}, "top_k"),
    ],
)
def test_values_and_names_that_no_server_has_are_refused(row, field):
    with pytest.raises(InputError) as caught:
        group_of(row)
    assert field in str(caught.value)


def test_old_releases_do_not_overlap_and_the_middle_is_not_known():
    eagle = load_drafter("kimi-k2.6-dflash").replace(algorithm="EAGLE3")
    row = {"q_len": 4, "kind": "chain", "draft": eagle.id}
    found = [
        group_of(row | {"engine_version": f"sglang {v}"}, drafter=eagle).batch.overlap.tolist()[0]
        for v in ("0.4.9", "0.5.6", "0.5.9", "0.5.11")
    ]
    assert found == [0.0, 0.0, 0.5, 1.0]
