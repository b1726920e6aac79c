"""A candidate becomes a launch with nothing left open: argv reads back, and the engine makes of it what was planned."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings

from planner.data import load_drafter, load_hardware, load_model
from planner.domain import Candidate, Launch, Need, Speculation
from planner.engine.argv import read_argv, split_program
from planner.engine.dialects import get_dialect
from planner.engine.emit import emit_launch, emit_launches
from planner.engine.resolution import Resolution, resolve
from planner.engine.runtime import runtime_facts
from planner.errors import EngineRefusal, InputError
from tests.engine.candidates import Wanted, wanted

CHAIN = Candidate(
    tp_size=8,
    speculation=Speculation.CHAIN,
    budget=7,
    topk=1,
    q_len=8,
    max_running_requests=8,
    cuda_graph_max_bs=8,
    attention_backend="trtllm_mla",
    page_size=64,
    mem_fraction_static=0.9,
)
TREE = CHAIN.replace(
    speculation=Speculation.TREE, budget=12, topk=4, q_len=13, attention_backend="triton", page_size=1, dialect="field"
)


def emit(candidate: Candidate, hw: str = "b300", **more: Any) -> Launch:
    given_values: dict[str, Any] = {
        "hardware": load_hardware(hw),
        "model": load_model("kimi-k2.6"),
        "drafter": load_drafter("kimi-k2.6-dflash"),
        "context_length": 32768,
    }
    return emit_launch(candidate, **(given_values | more))


def effective(launch: Launch, hw: str, version: str, dialect: str) -> Resolution:
    _, argv = split_program(launch.argv)
    read = read_argv(argv, version=version, dialect=dialect)
    assert not read.problems
    assert not read.abbreviated
    assert not read.repeated
    return resolve(
        read.launch.replace(env=launch.env),
        hardware=load_hardware(hw),
        model=load_model("kimi-k2.6"),
        drafter=load_drafter("kimi-k2.6-dflash"),
        engine_version=version,
        dialect=dialect,
    )


@settings(max_examples=150, deadline=None)
@given(wish=wanted())
def test_the_engine_runs_what_was_planned(wish: Wanted) -> None:
    candidate = wish.candidate
    launch = emit(candidate, wish.hw, engine_version=wish.version, dialect=wish.dialect)
    found = effective(launch, wish.hw, wish.version, wish.dialect)
    assert found.error is None
    values = found.effective
    assert values["tp_size"] == candidate.tp_size
    assert values["ep_size"] == candidate.ep_size
    assert values["attn_dp_size"] == candidate.attention_dp_size
    assert values["max_running_requests"] == candidate.max_running_requests
    assert values["mem_fraction_static"] == candidate.mem_fraction_static
    assert values["context_length"] == 32768
    assert values["page_size"] == candidate.page_size
    assert values["attention_backend"] == candidate.attention_backend
    assert values["cuda_graph_backend_decode"] == ("full" if candidate.cuda_graph else "disabled")
    facts = runtime_facts(found)
    assert facts.tokens_per_request == candidate.q_len
    assert facts.request_pool == max(1, candidate.max_running_requests // candidate.attention_dp_size)
    assert dict(facts.nccl_env)["NCCL_NVLS_ENABLE"] == str(int(candidate.enable_nccl_nvls))
    if candidate.cuda_graph:
        # with attention DP a captured batch is a multiple of the attention-TP group: never smaller than planned
        padding = facts.capture_sizes[-1] - candidate.cuda_graph_max_bs
        assert 0 <= padding < max(1, candidate.tp_size // candidate.attention_dp_size)
        assert padding == 0 or candidate.attention_dp_size > 1
        assert facts.verify_rows == facts.capture_sizes[-1] * candidate.q_len


@settings(max_examples=60, deadline=None)
@given(wish=wanted())
def test_no_value_of_the_prediction_is_left_to_a_default(wish: Wanted) -> None:
    """What the engine still fills or changes is nothing that a step, memory or a limit depends on."""
    launch = emit(wish.candidate, wish.hw, engine_version=wish.version, dialect=wish.dialect)
    found = effective(launch, wish.hw, wish.version, wish.dialect)
    relevant = {
        *("tp_size", "ep_size", "attn_dp_size", "max_running_requests", "mem_fraction_static", "chunked_prefill_size"),
        *("page_size", "attention_backend", "kv_cache_dtype", "context_length", "moe_runner_backend"),
        *("cuda_graph_max_bs_decode", "cuda_graph_backend_decode", "speculative_num_draft_tokens"),
        *("speculative_eagle_topk", "speculative_draft_attention_backend", "speculative_ddtree_budget"),
        "enable_nccl_nvls",
    }
    block_drafter = wish.candidate.speculation is not Speculation.OFF
    derived = {"speculative_eagle_topk"} if block_drafter else set()  # 1 by DFLASH, or derived from the budget
    derived |= {"attn_dp_size"}
    if not wish.candidate.cuda_graph:
        derived |= {"cuda_graph_max_bs_decode", "cuda_graph_backend_decode"}
    filled = {decision.field for decision in found.decisions if decision.field not in found.asked}
    assert filled & relevant <= derived


def test_replicas_differ_in_port_and_devices_only() -> None:
    pair = CHAIN.replace(tp_size=4, replicas=2, speculation=Speculation.OFF, budget=0, topk=0, q_len=1)
    launches = emit_launches(
        pair,
        hardware=load_hardware("b300"),
        model=load_model("kimi-k2.6"),
        drafter=None,
        context_length=32768,
    )
    assert [dict(launch.env)["CUDA_VISIBLE_DEVICES"] for launch in launches] == ["0,1,2,3", "4,5,6,7"]
    first, second = (launch.argv for launch in launches)
    assert [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]] == [("30000", "30001")]
    assert emit(pair, drafter=None, replica=1) == launches[1]


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("0.5.23", ("--cuda-graph-max-bs-decode", "--flashinfer-allreduce-fusion-backend")),
        ("0.5.12.post1", ("--cuda-graph-max-bs", "--enable-flashinfer-allreduce-fusion")),
    ],
)
def test_spelling_by_version(version: str, names: tuple[str, ...]) -> None:
    argv = emit(CHAIN.replace(allreduce_fusion=True, enable_nccl_nvls=True), engine_version=version).argv
    assert argv[:3] == ("python", "-m", "sglang.launch_server")
    assert set(names) <= set(argv)
    assert "--enable-nccl-nvls" in argv


def test_a_tree_in_two_dialects() -> None:
    field = emit(TREE).argv
    assert field[field.index("--speculative-algorithm") + 1] == "DDTREE"
    assert field[field.index("--speculative-num-draft-tokens") + 1] == "13"
    proposal = emit(TREE, dialect="pr29907").argv
    assert proposal[proposal.index("--speculative-num-draft-tokens") + 1] == "8"
    assert proposal[proposal.index("--speculative-ddtree-budget") + 1] == "12"


def test_a_release_has_no_tree() -> None:
    with pytest.raises(InputError, match="has no tree"):
        emit(TREE, dialect="upstream")


@pytest.mark.parametrize("need", [Need.GRAMMAR, Need.LOGPROBS])
def test_needs_that_a_tree_refuses(need: Need) -> None:
    assert need in get_dialect("field").refuses
    with pytest.raises(InputError, match="refuses"):
        emit(TREE, needs=[need])
    assert emit(CHAIN, needs=[need]).argv


def test_what_the_engine_would_refuse_is_not_emitted() -> None:
    with pytest.raises(EngineRefusal, match="triton"):
        emit(TREE.replace(attention_backend="flashinfer"), dialect="pr29907")


def test_an_eagle_tree_has_depth_width_and_nodes() -> None:
    drafter = load_drafter("kimi-k2.6-dflash").replace(
        algorithm="EAGLE3", model_path="some/eagle3", block_size=4, points=()
    )
    argv = emit(TREE.replace(dialect="upstream"), drafter=drafter, engine_version="0.5.23").argv
    given_values = dict(itertools.pairwise(argv))
    assert given_values["--speculative-algorithm"] == "EAGLE3"
    assert given_values["--speculative-num-steps"] == "3"
    assert given_values["--speculative-eagle-topk"] == "4"
    assert given_values["--speculative-num-draft-tokens"] == "13"


def test_speculation_without_a_drafter() -> None:
    with pytest.raises(InputError, match="drafter"):
        emit(CHAIN, drafter=None)
