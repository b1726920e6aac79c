"""Delta debugging names the guilty single, pair or several, and clears everything else."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.data.field_notes import field_runs
from planner.domain import Launch
from planner.errors import InputError
from planner.learn.flags import apply_changes, changes_between, read_commands
from planner.learn.isolate import Standing, isolate
from planner.learn.isolating import Judge
from planner.learn.trial import Result, Trial

NAMES = tuple("abcdefgh")


@st.composite
def guilty_sets(draw: st.DrawFn) -> list[frozenset[str]]:
    """One to three causes of one or two changes, none inside another."""
    found: list[frozenset[str]] = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 2))
        found.append(frozenset(draw(st.permutations(NAMES))[:size]))
    return [one for one in dict.fromkeys(found) if not any(other < one for other in found)]


@settings(max_examples=200, deadline=None)
@given(guilty=guilty_sets())
def test_guilty_sets_are_named_and_the_rest_is_cleared(guilty: list[frozenset[str]]) -> None:
    n_runs = 0

    def passes(wanted: frozenset[str]) -> bool:
        nonlocal n_runs
        n_runs += 1
        return not any(cause <= wanted for cause in guilty)

    found = isolate(NAMES, passes)
    assert {frozenset(cause) for cause in found.causes} <= set(guilty)
    singles = {cause for cause in guilty if len(cause) == 1}
    assert singles <= {frozenset(cause) for cause in found.causes}
    standing = dict(found.singles)
    blamed = set().union(*guilty)
    for name in NAMES:
        if frozenset((name,)) in singles:
            assert standing[name] is Standing.GUILTY
        elif name not in blamed:
            assert standing[name] is Standing.INNOCENT
    assert len(found.pairs) == len(list(combinations(NAMES, 2)))
    for a, b, verdict in found.pairs:
        fails = any(cause <= {a, b} for cause in guilty)
        assert (verdict is Standing.GUILTY) == fails, (a, b, verdict)
    assert n_runs <= 70
    assert not found.contradictions


def test_a_pair_takes_few_runs() -> None:
    runs: list[frozenset[str]] = []

    def passes(wanted: frozenset[str]) -> bool:
        runs.append(wanted)
        return not {"c", "f"} <= wanted

    assert isolate(NAMES, passes).causes == (("c", "f"),)
    assert len(runs) <= 30


def test_sets_that_cannot_say_clear_nobody() -> None:
    """The engine refuses b without a: b is not called innocent on that ground."""
    found = isolate(("a", "b"), lambda wanted: None if wanted == {"b"} else "a" not in wanted)
    assert found.causes == (("a",),)
    assert dict(found.singles)["b"] is Standing.NOT_NEEDED


def test_a_change_that_mends_is_shown() -> None:
    found = isolate(tuple("abcd"), lambda wanted: wanted not in ({"a"}, set("abcd")))
    assert found.contradictions == ("fails with a, passes with a, b",)


def test_a_launch_that_never_worked_is_bad_input() -> None:
    with pytest.raises(InputError, match="without any of the changes fails too"):
        isolate(("a",), lambda wanted: False)
    with pytest.raises(InputError, match="do not differ"):
        isolate((), lambda wanted: True)


def test_field_story_exonerates_fusion() -> None:
    """FN-10 to FN-12: EP8 with NVLS and fusion fails, so it does without fusion, so it does without NVLS."""
    changes = {"--ep-size": "ep_size", "--enable-nccl-nvls": "nvls", "--enable-flashinfer-allreduce-fusion": "fusion"}
    told = {
        (run.candidate.ep_size > 1, run.candidate.enable_nccl_nvls, run.candidate.allreduce_fusion): run.ok
        for run in field_runs()
        if run.hardware == "b300" and run.candidate.cuda_graph and run.candidate.budget == 8
        and run.candidate.max_running_requests <= 128
    }  # fmt: skip
    assert told[True, True, True] is told[True, True, False] is told[True, False, False] is False
    asked = []

    def passes(wanted: frozenset[str]) -> bool:
        key = ("--ep-size" in wanted, "--enable-nccl-nvls" in wanted, "--enable-flashinfer-allreduce-fusion" in wanted)
        asked.append(key)
        # Launches that the notes do not tell of: without EP nothing failed there.
        return told.get(key, not key[0])

    found = isolate(list(changes), passes)
    assert found.causes == (("--ep-size",),)
    assert dict(found.singles)["--enable-flashinfer-allreduce-fusion"] is Standing.INNOCENT
    assert dict(found.singles)["--enable-nccl-nvls"] is Standing.INNOCENT
    pairs = {frozenset(pair[:2]): pair[2] for pair in found.pairs}
    fusion_and_nvls = frozenset({"--enable-nccl-nvls", "--enable-flashinfer-allreduce-fusion"})
    assert pairs.pop(fusion_and_nvls) is Standing.INNOCENT
    assert set(pairs.values()) == {Standing.GUILTY}


# -- with launches ---------------------------------------------------------------------------------------------------
GOOD = Launch(argv=("python", "-m", "sglang.launch_server", "--tp-size", "8", "--x", "1"), env=(("A", "1"),))
BAD = Launch(argv=("python", "-m", "sglang.launch_server", "--tp-size=4", "--y", "--z", "2", "3", "--port", "9"))


def test_differences_and_back() -> None:
    changes = changes_between(GOOD, BAD)
    assert list(changes) == ["--tp-size", "--y", "--z", "--x", "A"]
    whole = apply_changes(GOOD, list(changes.values()))
    assert not changes_between(whole, BAD)
    assert apply_changes(GOOD, []) == GOOD
    assert changes["A"].shown == "without A"


def test_flaky_starts_and_other_failures_are_told_apart() -> None:
    changes = changes_between(GOOD, BAD)
    n_runs = 0

    def run(trial: Trial, why: str) -> Result:
        nonlocal n_runs
        n_runs += 1
        if n_runs % 4 == 1:
            return Result(ok=False, cause="exited")
        if "--y" in trial.argv and "1" not in trial.argv[4:]:
            return Result(ok=False, cause="cublas-exec-failed")
        if "--z" in trial.argv and "--y" not in trial.argv:
            return Result(ok=False, cause="refused", launched=False)
        return Result(ok=True, cause="ok")

    judge = Judge(GOOD, changes, run)
    found = isolate(list(changes), judge.passes)
    assert judge.cause == "cublas-exec-failed"
    assert found.causes == (("--y", "--x"),)
    assert any("flaky start" in note for note in judge.notes)


def test_command_files(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "commands"
    path.write_text("# two\nA=1 python -m x --a \\\n  --b 2\n\npython -m x  # end\n")
    assert read_commands(path) == [
        Launch(argv=("python", "-m", "x", "--a", "--b", "2"), env=(("A", "1"),)),
        Launch(argv=("python", "-m", "x")),
    ]
    path.write_text("A=1\npython 'x\n")
    with pytest.raises(InputError) as caught:
        read_commands(path)
    assert [problem.line for problem in caught.value.problems] == [1, 2]
