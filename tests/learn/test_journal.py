"""The journal of an experiment: whole after any cut, held by one process, about one thing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner.learn.journal
from planner.errors import InputError
from planner.learn.journal import open_journal
from planner.learn.trial import Result, Trial

TRIALS = [Trial.of(("python", "-m", "x", "--n", str(n)), knobs={"n": str(n)}) for n in range(4)]


def fill(path: Path) -> None:
    with open_journal(path, header={"kind": "test"}) as journal:
        for trial in TRIALS:
            journal.started(trial, why="because")
            journal.ended(trial, Result(ok=True, cause="ok", detail="käse\u2028\x85line", took_s=1.0))


@settings(max_examples=60, deadline=None)
@given(cut_frac=st.floats(0, 1))
def test_a_cut_at_any_byte_loses_only_what_was_not_whole(
    tmp_path_factory: pytest.TempPathFactory, cut_frac: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "journal"
    fill(path)
    whole = path.read_bytes()
    cut = whole[: int(cut_frac * len(whole))]
    path.write_bytes(cut)
    n_ended = sum(b'"event": "ended"' in line for line in cut.splitlines(keepends=True) if line.endswith(b"\n"))
    with open_journal(path, header={"kind": "test"}) as journal:
        assert [trial for trial, _ in journal.finished] == TRIALS[:n_ended]
        journal.ended(TRIALS[3], Result(ok=False, cause="exited"))
    with open_journal(path, header={"kind": "test"}) as journal:
        assert len(journal.finished) == n_ended + 1


def test_one_process_holds_it_and_it_is_about_one_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner.learn.journal, "LOCK_PATIENCE_S", 0.1)
    path = tmp_path / "journal"
    fill(path)
    with open_journal(path, header={"kind": "test"}), pytest.raises(InputError, match="another run holds it"):
        open_journal(path, header={"kind": "test"}).__enter__()
    with pytest.raises(InputError, match="is about"), open_journal(path, header={"kind": "other"}):
        pass
    other = tmp_path / "other"
    other.write_text("hello\nworld\n")
    with pytest.raises(InputError, match="not a line of a journal"), open_journal(other, header={}):
        pass
    assert other.read_text() == "hello\nworld\n"


def test_a_replay_answers_from_the_journal_first(tmp_path: Path) -> None:
    """A probe that is started again gets the results that it got before, in order, and goes on from there."""

    class Counting:
        n = 0

        def run(self, trial: Trial, attempt: int) -> Result:
            self.n += 1
            return Result(ok=attempt > 1, cause="ok" if attempt > 1 else "exited")

    runner = Counting()
    for _ in range(2):
        with open_journal(tmp_path / "journal", header={}) as journal:
            run = journal.replay(runner)
            assert [run(TRIALS[0], "").ok, run(TRIALS[0], "").ok, run(TRIALS[1], "").ok] == [False, True, False]
    assert runner.n == 3
