"""Dialects: what num_draft_tokens means, what a tree requires, what it turns off."""

from __future__ import annotations

from typing import Any

import pytest

from planner.data import load_drafter, load_hardware, load_model
from planner.domain import Need
from planner.engine.argv import read_argv
from planner.engine.dialects import DIALECTS, DraftTokens, VerifyWidth, get_dialect, known_algorithms
from planner.engine.flags import flag_versions
from planner.engine.resolution import Resolution, resolve
from planner.errors import InputError

TREE = tuple(name for name, dialect in DIALECTS.items() if dialect.has_tree)


def resolved(dialect: str, argv: list[str], hw: str = "b300") -> Resolution:
    speaks = get_dialect(dialect)
    base = ["--model-path", "moonshotai/Kimi-K2.6", "--trust-remote-code", "--tp-size", "8"]
    base += ["--speculative-draft-model-path", "z-lab/Kimi-K2.6-DFlash", "--max-running-requests", "8"]
    read = read_argv([*base, *argv], version=speaks.base_version, dialect=dialect)
    assert not read.problems
    return resolve(
        read.launch,
        hardware=load_hardware(hw),
        model=load_model("kimi-k2.6"),
        drafter=load_drafter("kimi-k2.6-dflash"),
        engine_version=speaks.base_version,
        dialect=dialect,
    )


PAGE_1 = ["--attention-backend", "triton", "--page-size", "1"]
LAUNCHES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "field": (
        ["--speculative-algorithm", "DDTREE", "--speculative-num-draft-tokens", "13", "--speculative-eagle-topk", "4"],
        {"speculative_num_draft_tokens": 13, "speculative_eagle_topk": 4},
    ),
    "pr29907": (
        ["--speculative-algorithm", "DDTREE", "--speculative-ddtree-budget", "12"],
        {"speculative_num_draft_tokens": 8, "speculative_ddtree_budget": 12, "page_size": 1},
    ),
    "rancy-wang": (
        ["--speculative-algorithm", "DDTREE", "--speculative-ddtree-budget", "12"],
        {"speculative_num_draft_tokens": 8, "speculative_ddtree_budget": 12},
    ),
    "dflash-enable-ddtree": (
        [
            *["--speculative-algorithm", "DFLASH", "--speculative-dflash-enable-ddtree"],
            *["--speculative-num-draft-tokens", "13", "--speculative-dflash-block-size", "8"],
        ],
        {"speculative_num_draft_tokens": 13},
    ),
    "pr31069": (
        [
            *["--speculative-algorithm", "DFLASH", "--speculative-dflash-tree-verify"],
            *["--speculative-num-draft-tokens", "13", "--speculative-eagle-topk", "4"],
        ],
        {"speculative_num_draft_tokens": 13, "speculative_eagle_topk": 4},
    ),
    "pr36196": (
        [
            *["--speculative-algorithm", "DFLASH", "--speculative-dflash-tree-width", "4"],
            *["--speculative-num-draft-tokens", "13"],
        ],
        {"speculative_num_draft_tokens": 13, "speculative_dflash_tree_width": 4},
    ),
}


@pytest.mark.parametrize("name", TREE)
def test_a_tree_in_its_dialect(name: str) -> None:
    argv, wanted = LAUNCHES[name]
    found = resolved(name, [*argv, *PAGE_1])
    assert found.error is None
    assert {key: found.effective[key] for key in wanted} == wanted
    dialect = get_dialect(name)
    assert found.effective["speculative_algorithm"] == dialect.algorithm
    if dialect.disables_overlap:
        assert found.effective["disable_overlap_schedule"] is True
    if dialect.disables_mixed_chunk:
        assert found.effective["enable_mixed_chunk"] is False


@pytest.mark.parametrize("name", TREE)
def test_verify_width_is_budget_plus_one_however_it_is_spelled(name: str) -> None:
    dialect = get_dialect(name)
    for budget in (7, 8, 12, 16):
        tokens = dialect.draft_tokens(budget=budget, block_size=8)
        assert tokens is not None
        assert dialect.q_len(num_draft_tokens=tokens, budget=budget) == budget + 1
        assert (tokens == 8) == (dialect.num_draft_tokens is DraftTokens.BLOCK_SIZE or budget == 7)
        assert dialect.full_tree(budget=budget, block_size=8) == (budget > 7)


@pytest.mark.parametrize("version", ["0.5.12.post1", "0.5.13", "0.5.16", "0.5.23"])
def test_no_release_knows_ddtree(version: str) -> None:
    assert "DDTREE" not in known_algorithms(version)
    assert "DFLASH" in known_algorithms(version)
    argv = ["--model-path", "moonshotai/Kimi-K2.6", "--speculative-algorithm", "DDTREE"]
    launch = read_argv(argv, version=version).launch
    found = resolve(launch, hardware=load_hardware("b300"), model=load_model("kimi-k2.6"), engine_version=version)
    assert found.error is not None


def test_a_full_tree_of_pr29907_needs_triton_and_page_1() -> None:
    """On a B300 the engine would take trtllm_mla and page 64: the tree is refused unless both are stated."""
    argv, _ = LAUNCHES["pr29907"]
    refused = resolved("pr29907", argv)
    assert refused.error is not None
    assert "page_size" in refused.error.message
    refused = resolved("pr29907", [*argv, "--attention-backend", "flashinfer", "--page-size", "1"])
    assert refused.error is not None
    assert "triton" in refused.error.message
    spine = ["--speculative-algorithm", "DDTREE", "--speculative-ddtree-budget", "7"]
    assert resolved("pr29907", [*spine, "--attention-backend", "flashinfer", "--page-size", "1"]).error is None


def test_the_width_of_pr29907_follows_from_the_budget() -> None:
    dialect = get_dialect("pr29907")
    assert [dialect.derived_topk(budget=budget, block_size=8) for budget in (8, 13, 14, 28, 70)] == [2, 2, 3, 5, 6]


def test_the_switch_makes_the_tree() -> None:
    """DFLASH without the switch of the build is the chain that every release runs."""
    found = resolved("dflash-enable-ddtree", ["--speculative-algorithm", "DFLASH", *PAGE_1])
    assert found.error is None
    assert found.effective["speculative_num_draft_tokens"] == 8


@pytest.mark.parametrize("name", DIALECTS)
def test_a_record_says_what_is_known_and_what_is_assumed(name: str) -> None:
    dialect = get_dialect(name)
    assert dialect.base_version in flag_versions()
    assert dialect.evidence
    assert dialect.has_tree == (dialect.num_draft_tokens is not DraftTokens.NONE)
    if dialect.has_tree:
        assert dialect.assumed
        assert {Need.GRAMMAR, Need.LOGPROBS} <= dialect.refuses
    if dialect.verify_width is VerifyWidth.BUDGET_PLUS_ONE:
        assert any(flag.dest == "speculative_ddtree_budget" for flag in dialect.flags)


def test_names() -> None:
    assert get_dialect(None).id == "upstream"
    assert get_dialect("PR-29907").id == "pr29907"
    with pytest.raises(InputError, match="pr29907"):
        get_dialect("pr2990")
