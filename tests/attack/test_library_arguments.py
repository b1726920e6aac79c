"""What a notebook hands to ``planner.plan`` and ``planner.predict``: other spellings of the same question, and faults.

Each case once gave a traceback of the planner's own, figures of another question, or a refusal of its own launch.
"""

from __future__ import annotations

from typing import Any

import pytest

import planner

FLAGS = ["--model-path", "moonshotai/Kimi-K2.6", "--tp-size", "8"]
TREE = [
    *FLAGS,
    *("--speculative-algorithm", "DDTREE", "--speculative-draft-model-path", "z-lab/Kimi-K2.6-DFlash"),
    *("--attention-backend", "triton", "--page-size", "1", "--max-running-requests", "8"),
]

SAME: list[Any] = [
    ["python", "-m", "sglang.launch_server", *FLAGS],
    "python -m sglang.launch_server " + " ".join(FLAGS),
    [*FLAGS[:-1], 8],
    planner.LaunchConfig(model_path="moonshotai/Kimi-K2.6", tp_size=8),
]


@pytest.mark.parametrize("launch", SAME, ids=["program", "line", "number", "value"])
def test_a_launch_is_read_the_same_however_it_is_given(launch: Any) -> None:
    want = planner.predict("b300", launch=FLAGS, workload={"target_c": 8})
    assert planner.predict("b300", launch=launch, workload={"target_c": 8}) == want


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ([], "--model-path: missing"),
        (["--tp-size", "8"], "--model-path: missing"),
        ("--model-path 'x", "cannot be split into words"),
        (7, "must be a list of words"),
        ([("--model-path", "x")], "must be a list of words"),
    ],
)
def test_a_launch_that_cannot_be_read_is_bad_input(launch: Any, said: str) -> None:
    with pytest.raises(planner.InputError, match=said):
        planner.predict("b300", launch=launch, workload={"target_c": 8})


def test_a_workload_value_is_the_same_as_its_keywords() -> None:
    want = planner.predict("b300", launch=FLAGS, workload={"target_c": 8, "context": 2048})
    got = planner.predict("b300", launch=FLAGS, workload=planner.Workload(target_c=8, context_tok=2048))
    assert got == want
    with pytest.raises(planner.InputError, match="workload"):
        planner.predict("b300", launch=FLAGS, workload=8)  # type: ignore[arg-type]


def test_the_launch_of_a_plan_can_be_predicted_as_it_is() -> None:
    """No release takes a tree: with no build named, the newest one used to refuse the planner's own command."""
    plan = planner.plan(hw="b300", target_c=8, speculation="tree")
    assert plan.launch is not None
    assert plan.effective is not None
    for launch in (plan.launch, plan.launch.argv):
        prediction = planner.predict("b300", launch=launch, workload={"target_c": 8})
        assert prediction.effective.dialect == plan.effective.dialect
        assert prediction.effective.q_len == plan.effective.q_len
        assert plan.effective.dialect in prediction.assumptions[0]


@pytest.mark.parametrize(
    ("flags", "dialect", "q_len"),
    [
        (["--speculative-num-draft-tokens", "8", "--speculative-ddtree-budget", "16"], "pr29907", 17),
        (["--speculative-num-draft-tokens", "17", "--speculative-eagle-topk", "4"], "field", 17),
    ],
)
def test_a_tree_is_read_in_the_dialect_of_its_flags(flags: list[str], dialect: str, q_len: int) -> None:
    effective = planner.predict("b300", launch=[*TREE, *flags]).effective
    assert (effective.dialect, effective.q_len) == (dialect, q_len)


def test_a_release_that_is_named_still_refuses_a_tree() -> None:
    with pytest.raises(planner.InputError, match="ddtree-budget"):
        planner.predict("b300", launch=[*TREE, "--speculative-ddtree-budget", "16"], engine_version="0.5.23")


@pytest.mark.parametrize(
    ("path", "told"),
    [("Qwen/Qwen3-8B", True), ("moonshotai/Kimi-K2.6", False), ("/models/Kimi-K2.6/", False)],
)
def test_figures_of_another_model_are_said_to_be_so(path: str, told: bool) -> None:
    prediction = planner.predict("b300", launch=["--model-path", path, "--tp-size", "8"])
    assert any(path in one for one in prediction.assumptions) is told


def test_texts_stand_for_lists_of_one() -> None:
    with pytest.raises(planner.InputError) as fault:
        planner.plan(hw="b300", target_c=8, limits="/nowhere.toml", lift="B300-GRAPH-Q-LEN")
    assert "/nowhere.toml: No such file" in str(fault.value)
    assert "B300-GRAPH-Q-LEN has no reason" in str(fault.value)
    assert len(fault.value.problems) == 2


def test_needs_and_lifts_are_taken_as_the_command_line_takes_them() -> None:
    plan = planner.plan(hw="b300", target_c=8, needs="grammar,logprobs", lift=["B300-GRAPH-Q-LEN=tried on this box"])
    assert {need.value for need in plan.workload.needs} == {"grammar", "logprobs"}
    assert plan == planner.plan(
        hw="b300", target_c=8, needs=("grammar", "logprobs"), lift={"B300-GRAPH-Q-LEN": "tried on this box"}
    )
