"""Repair: the smallest change that clears every error; checks clean; a second repair changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.data import load_limits
from planner.domain import Level
from planner.parse import parse_text
from planner.review import Subject, load_subject, review_file
from planner.review.fixing import Repaired, repair
from planner.review.upgrading import upgrade
from planner.rules import RULES, Rule
from planner.search.repair import Step, smallest_repair

LIMITS = load_limits()


def fix(text: str, subject: Subject, form: str | None = None) -> Repaired:
    return repair(
        parse_text(text, name="x.sh", form=form),
        subject=subject,
        limits=LIMITS,
        predict=lambda context: (None, "not asked for"),
    )


def errors(text: str, subject: Subject, form: str | None = None) -> list[str]:
    found = review_file(parse_text(text, name="x.sh", form=form), subject=subject, limits=LIMITS).findings
    return [finding.code for finding in found if finding.level is Level.ERROR]


def test_a_slip_of_spelling_is_put_right_and_its_value_kept() -> None:
    line = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --mem-fraction-{} 0.8\n"
    repaired = fix(line.format("sttic"), Subject())
    assert repaired.text == line.format("static")
    assert not repaired.safe


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_bad_example(rule: Rule) -> None:
    options = rule.bad.options()
    form = options.pop("form", None)
    subject = load_subject(**options)  # type: ignore[arg-type]
    repaired = fix(rule.bad.text, subject, form)  # type: ignore[arg-type]
    left = errors(repaired.text, subject, form)  # type: ignore[arg-type]
    assert sorted(left) == sorted(finding.code for finding in repaired.left)
    again = fix(repaired.text, subject, form)  # type: ignore[arg-type]
    assert again.text == repaired.text
    assert not again.changes


def test_layout_and_comments_stay() -> None:
    text = (
        "#!/bin/bash\n# our server\nMODEL=Qwen/Qwen3-8B   # small\n"
        "python3 -m sglang.launch_server --model-path $MODEL \\\n"
        "    --enable_metrics \\\n    --port 30000   # public\n"
    )
    repaired = fix(text, load_subject(engine_version="0.5.16"))
    assert repaired.text == text.replace("--enable_metrics", "--enable-metrics")
    assert repaired.complete
    assert repaired.proved_smallest
    assert repaired.diff.count("\n-    --enable_metrics") == 1


def test_one_edit_that_clears_two_errors_is_used_once() -> None:
    """trtllm_mla with topk 4 is refused, and so is deterministic inference on it: triton answers both."""
    text = (
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend trtllm_mla "
        "--enable-deterministic-inference --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 4 --speculative-num-draft-tokens 16 --max-running-requests 16\n"
    )
    subject = load_subject(hw="b200", gpus=8, engine_version="0.5.23")
    assert {"ATT007", "ATT016"} <= set(errors(text, subject))
    repaired = fix(text, subject)
    assert repaired.complete
    assert len(repaired.changes) == 1
    assert "--attention-backend triton" in repaired.text


def test_safe_edits_are_preferred_and_can_be_required() -> None:
    text = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --max-model-len 4096\n"
    subject = load_subject(engine_version="0.5.16")
    assert not fix(text, subject).safe
    kept = repair(parse_text(text, name="x.sh"), subject=subject, limits=LIMITS, allow_unsafe=False)
    assert kept.text == text
    assert [finding.code for finding in kept.left] == ["FLG003"]


def test_several_launches_are_repaired_each() -> None:
    one = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable_metrics\n"
    repaired = fix(one + one.replace("enable_metrics", "enable_lora"), load_subject(engine_version="0.5.16"))
    assert repaired.complete
    assert "_metrics" not in repaired.text
    assert "--enable-lora" in repaired.text


def test_upgrade_renames_and_says_what_is_left() -> None:
    text = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-max-bs 64 --enable-ep-moe\n"
    done = upgrade(parse_text(text, name="x.sh"), "0.5.23", subject=load_subject(hw="b200", engine_version="0.5.12"))
    assert "--cuda-graph-max-bs-decode 64" in done.text
    assert "--enable-ep-moe" not in done.text
    assert any(not one.safe for one in done.rewritten)
    assert not done.left
    again = upgrade(done.after, "0.5.23", subject=load_subject(hw="b200"))
    assert again.text == done.text


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.frozensets(st.integers(0, 5), min_size=1, max_size=4)), min_size=1, max_size=6
    ),
    st.frozensets(st.integers(0, 5), max_size=6),
)
@settings(max_examples=200, deadline=None)
def test_the_search_is_exact(edits: list[tuple[int, frozenset[int]]], faults: frozenset[int]) -> None:
    """Against brute force over all subsets: edits clear sets of faults."""

    def candidates(state: frozenset[int]) -> list[Step[frozenset[int], int]]:
        return [Step(cost, number, state | {number}) for number, (cost, _) in enumerate(edits) if number not in state]

    def left(state: frozenset[int]) -> int:
        cleared = frozenset().union(*(edits[number][1] for number in state)) if state else frozenset()
        return len(faults - cleared)

    found = smallest_repair(frozenset(), n_faults=left, candidates=candidates, max_states=1000)
    subsets = [frozenset(n for n in range(len(edits)) if mask >> n & 1) for mask in range(1 << len(edits))]
    clean = [sum(edits[n][0] for n in subset) for subset in subsets if left(subset) == 0]
    assert found.complete == bool(clean)
    if clean:
        assert found.cost == min(clean)
