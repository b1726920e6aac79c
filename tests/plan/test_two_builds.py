"""With no build named the build with trees and the newest release are both searched, and the better plan is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import planner
from planner.domain import PlanStatus

EAGLE = """
schema_version = 1
id = "small-eagle"
name = "small EAGLE3 drafter"
model_path = "some/eagle3"
algorithm = "EAGLE3"
targets = ["kimi-k2.6"]
block_size = 6
n_layers = 1
hidden_dim = 7168
n_heads = 64
n_kv_heads = 8
head_dim = 128
ffn_dim = 18432
vocab_size = 163840

[[points]]
target = "kimi-k2.6"
kind = "tree"
budget = 8
topk = 4
accept_len = 3.2
domain = "code"
context_tok = 1024
temperature = 0.0

[points.source]
field = "accept_len"
kind = "measured"
ref = "test"

[[sources]]
field = "*"
kind = "measured"
ref = "test"
"""


def rate(plan: Any) -> float:
    return float(plan.predicted.tok_per_s.value)


@pytest.mark.parametrize(
    "asked",
    [
        {"target_c": 8, "max_tpot_ms": 6.0},
        {"target_c": 64, "max_tpot_ms": 10.0, "allow_queue": True},
        {"target_c": 64},
        {"target_c": 128},
    ],
)
def test_the_answer_is_never_worse_than_that_for_the_release(asked: dict[str, Any]) -> None:
    best, release = planner.plan(hw="b300", **asked), planner.plan(hw="b300", engine_version="0.5.23", **asked)
    assert best.status is release.status is PlanStatus.OPTIMAL
    assert rate(best) >= rate(release) * 0.9499


def test_the_other_build_stands_beside_the_answer() -> None:
    plan = planner.plan(hw="b300", target_c=64)
    assert plan.effective is not None
    assert plan.other_build is not None
    named = planner.plan(hw="b300", target_c=64, dialect="pr29907")
    assert {plan.effective.dialect, plan.other_build.candidate.dialect} == {"upstream", "pr29907"}
    assert plan.other_build.candidate == named.effective
    assert plan.other_build.launches


def test_trees_that_every_release_runs_are_planned_for_the_release(tmp_path: Path) -> None:
    """The fork's tree runs without overlap; a tree of an EAGLE drafter has nothing to do with it."""
    file = tmp_path / "eagle.toml"
    file.write_text(EAGLE)
    plan = planner.plan(hw="b300", drafter=str(file), target_c=8, speculation="tree")
    assert plan.effective is not None
    assert (plan.effective.dialect, plan.effective.speculation.value, plan.other_build) == ("upstream", "tree", None)
    fork = planner.plan(hw="b300", drafter=str(file), target_c=8, speculation="tree", dialect="pr29907")
    assert rate(fork) == pytest.approx(rate(plan), rel=0.01)


def test_predict_hears_what_the_launch_says_of_overlap_and_draft_steps(tmp_path: Path) -> None:
    launch = ["--model-path", "moonshotai/Kimi-K2.6", "--tp-size", "8", "--attention-backend", "triton",
              "--max-running-requests", "32", "--cuda-graph-max-bs-decode", "32"]  # fmt: skip
    chain = ["--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "z-lab/Kimi-K2.6-DFlash",
             "--speculative-num-draft-tokens", "8"]  # fmt: skip
    asked: dict[str, Any] = {"workload": {"target_c": 32}, "engine_version": "0.5.23"}
    on, off = (
        planner.predict("b300", launch=[*launch, *chain, *more], **asked)
        for more in ([], ["--disable-overlap-schedule"])
    )
    assert off.predicted.step_s.value > 1.1 * on.predicted.step_s.value
    file = tmp_path / "eagle.toml"
    file.write_text(EAGLE)
    tree = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "x", "--speculative-eagle-topk", "4",
            "--speculative-num-draft-tokens", "9", "--speculative-num-steps"]  # fmt: skip
    one, three, five = (
        planner.predict("b300", launch=[*launch, *tree, steps], drafter=str(file), **asked).predicted
        for steps in ("1", "3", "5")
    )
    assert one.step_s.value < three.step_s.value < five.step_s.value
    assert 1.5 < one.accept_len.value < one.accept_len.high == 2.0, "one drafted token and the bonus token"
    assert one.accept_len.value < three.accept_len.value < five.accept_len.value == pytest.approx(3.2, rel=0.02)


def test_pins_that_one_build_alone_can_meet() -> None:
    """The release has no tree on a block drafter: the other build answers, and says why it cannot."""
    tree = planner.plan(hw="b300", target_c=8, speculation="tree")
    assert tree.effective is not None
    assert (tree.effective.dialect, tree.effective.speculation.value) == ("pr29907", "tree")
    refused = planner.plan(hw="b300", target_c=8, speculation="tree", needs=["grammar"])
    assert refused.status is PlanStatus.INFEASIBLE
    assert refused.conflict is not None
    assert "refuse grammar" in refused.conflict.text
    pins: dict[str, Any] = {"tp_size": 4, "speculation": "chain", "kv_cache_dtype": "fp8_e4m3"}
    small = planner.plan(hw="b300", target_c=56, context=100000, **pins)
    assert small.status is PlanStatus.OPTIMAL, "the fork's chain fits, the release's does not"


def test_fp8_is_no_way_to_win_a_tie() -> None:
    """BF16 meets the ceiling on the release: a tree with FP8 KV is not looked at."""
    plan = planner.plan(hw="b300", target_c=32, context=8000, max_tpot_ms=15.8)
    assert plan.effective is not None
    assert plan.effective.kv_cache_dtype == "bf16"


@pytest.mark.parametrize("steps", ["-1", "0"])
def test_draft_steps_below_one_are_refused_by_name(steps: str) -> None:
    words = ["--model-path", "m", "--tp-size", "8", "--speculative-algorithm", "EAGLE3"]
    with pytest.raises(planner.InputError, match="--speculative-num-steps"):
        planner.predict("b300", launch=[*words, "--speculative-num-steps", steps], workload={"target_c": 32})


def test_an_accept_length_above_what_a_step_can_commit_is_refused() -> None:
    words = ["--model-path", "moonshotai/Kimi-K2.6", "--tp-size", "8", "--speculative-algorithm", "DFLASH",
             "--speculative-draft-model-path", "z-lab/Kimi-K2.6-DFlash", "--speculative-num-draft-tokens"]  # fmt: skip
    asked: dict[str, Any] = {"workload": {"target_c": 8}, "engine_version": "0.5.23"}
    assert planner.predict("b300", launch=[*words, "6"], accept_len=6.0, **asked).predicted.accept_len.value == 6.0
    with pytest.raises(planner.InputError, match="at most 6"):
        planner.predict("b300", launch=[*words, "6"], accept_len=6.5, **asked)


def test_one_of_two_servers_is_said_to_take_all_clients() -> None:
    plan = planner.plan(hw="b300", target_c=64, tp_size=4)
    assert plan.launches is not None
    assert len(plan.launches) == 2
    prediction = planner.predict("b300", launch=plan.launches[0], workload={"target_c": 32})
    assert any("4 of 8 GPUs takes all 32 clients" in text for text in prediction.assumptions)
