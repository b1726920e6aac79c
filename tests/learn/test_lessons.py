"""Runs become proposals: the main job's limits from the field notes, and from a ledger; a plan then obeys them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cli.learn import learn
from planner.data import load_hardware, load_limits, load_model, read_limits
from planner.data.field_notes import field_runs
from planner.domain import Candidate, LimitStatus, Observation, Outcome
from planner.errors import InputError
from planner.launch.ledger import Ledger
from planner.learn.evidence import runs_of_field_notes, runs_of_observations
from planner.learn.lessons import learn_from
from planner.learn.proposal_files import amended_text
from planner.learn.propose import Run, propose_limits
from planner.learn.revise import revise_limits
from planner.search.planning import make_plan
from planner.search.request import Question, WorkloadInput
from planner.search.space import Pins
from tests.learn.engine import Truth

B300, KIMI = load_hardware("b300"), load_model("kimi-k2.6")
BASE = Candidate(
    tp_size=8, speculation="tree", budget=8, topk=4, q_len=9, max_running_requests=64, cuda_graph_max_bs=64,
    attention_backend="triton", mem_fraction_static=0.85, dialect="field",
)  # fmt: skip


def with_rows(requests: int, budget: int = 8, **changes: object) -> Candidate:
    return BASE.replace(
        max_running_requests=requests, cuda_graph_max_bs=requests, budget=budget, q_len=budget + 1, **changes
    )


def observation(number: int, candidate: Candidate, cause: str = "ok", **fields: object) -> Observation:
    values = {"hardware": "b300", "model": "kimi-k2.6", "engine_version": "0.5.12.post1", "source": "a test"} | fields
    return Observation(id=f"obs-{number}", candidate=candidate, outcome=Outcome(cause=cause), **values)  # type: ignore[arg-type]


def run(ref: str, candidate: Candidate, cause: str = "ok", version: str | None = None) -> Run:
    return Run(ref=ref, candidate=candidate, cause=cause, outcome=cause, engine=f"SGLang {version}", version=version)


def ledger_of(tmp_path: Path, *observations: Observation) -> Path:
    path = tmp_path / "runs.db"
    with Ledger(path, create=True) as opened:
        opened.append(observations)
    return path


def call(*argv: object) -> Result:
    return CliRunner().invoke(learn, [str(word) for word in argv])


def tok_per_s(limits: tuple[Path, ...] = ()) -> tuple[int, float]:
    """Rows and rate of the plan for the field notes' layout."""
    pins = Pins.read({"tp_size": 8, "attention_dp_size": 1, "attention_backend": "triton"})
    asked = Question(hw="b300", workload=WorkloadInput(target_c=64), dialect="field", pins=pins, limits=limits)
    plan = make_plan(asked)
    assert plan.effective is not None
    assert plan.predicted is not None
    return plan.effective.verify_rows_per_rank, plan.predicted.tok_per_s.value


# -- field notes -----------------------------------------------------------------------------------------------------
def test_field_notes_give_the_limits_of_the_main_job(tmp_path: Path) -> None:
    """Interval, scope, status and consequence of each; fusion and NVLS are not the cause of FN-10 to FN-12."""
    out = tmp_path / "limits.toml"
    done = call("--field-notes", "--out", out)
    assert done.exit_code == 0, done.output
    found = {limit.quantity: limit for limit in read_limits(out)}
    builtin = {limit.id: limit for limit in load_limits()}
    pairs = {
        "verify_rows_per_rank": builtin["B300-MLA-VERIFY-ROWS"],
        "q_len": builtin["B300-GRAPH-Q-LEN"],
        "ep_size": builtin["B300-EP8-GRAPHS"],
    }
    assert found.keys() == pairs.keys()
    for quantity, known in pairs.items():
        mine = found[quantity]
        for field in ("known_good", "known_bad", "status", "consequence", "shape"):
            assert getattr(mine, field) == getattr(known, field), (quantity, field)
        for field in ("sm", "heads_per_rank", "attention_backend", "cuda_graph"):
            assert getattr(mine.when, field) == getattr(known.when, field), (quantity, field)
    assert "confounded" in (found["ep_size"].confidence_note or "")
    assert "allreduce_fusion" in done.output
    assert "enable_nccl_nvls" in done.output


def test_each_launch_of_the_story_is_answered_as_the_notes_say() -> None:
    """FN-04 to FN-14: every failure is explained by the limit that the notes name, no good run is refused."""
    runs = runs_of_field_notes(field_runs(), hardware="b300").runs
    lessons = learn_from(runs, (), hardware=B300, model=KIMI)
    assert not lessons.proposals.unexplained
    by_quantity = {limit.quantity: set(lessons.proposals.explained[limit.id]) for limit in lessons.proposals.limits}
    named = lambda *numbers: {f"field note FN-{number:02d}" for number in numbers}  # noqa: E731
    assert by_quantity["verify_rows_per_rank"] == named(4, 5)
    assert by_quantity["q_len"] == named(6, 7, 9)
    assert by_quantity["ep_size"] == named(10, 11, 12)
    for limit in lessons.proposals.limits:
        for one in runs:
            value = one.value(limit.quantity or "")
            inside = limit.when.cuda_graph in (None, one.candidate.cuda_graph)
            if one.ok and inside and value is not None and limit.known_good is not None:
                assert value <= limit.known_good


# -- ledgers ---------------------------------------------------------------------------------------------------------
def test_a_ledger_of_a_hidden_threshold_gives_its_interval(tmp_path: Path) -> None:
    limits = {limit.id: limit for limit in load_limits()}
    path = ledger_of(
        tmp_path,
        observation(1, with_rows(128), tok_per_s=4000.0, concurrency=64),
        observation(2, with_rows(144), tok_per_s=4100.0, concurrency=64),
        observation(3, with_rows(192), "cublas-exec-failed"),
        observation(4, with_rows(164), "exited"),
        observation(5, with_rows(164), tok_per_s=4200.0, concurrency=64),
    )
    out = tmp_path / "limits.toml"
    done = call(path, "--out", out)
    assert done.exit_code == 0, done.output
    (moved,) = read_limits(out)
    assert moved.id == "B300-MLA-VERIFY-ROWS"
    assert (moved.known_good, moved.known_bad) == (164 * 9, 192 * 9)
    assert len(moved.evidence) == len(limits[moved.id].evidence) + 2
    assert "FLAKY observation obs-4" in done.output


@settings(max_examples=60, deadline=None)
@given(row_limit=st.floats(300, 2600), q_len_max=st.integers(6, 30), seed=st.integers(0, 1000))
def test_the_stand_ins_ledger_gives_its_hidden_limits(row_limit: float, q_len_max: int, seed: int) -> None:
    """Whatever was launched, each proposed interval holds the hidden threshold of its quantity."""
    truth = Truth(row_limit=row_limit, graph_q_len_max=q_len_max)
    rng = np.random.default_rng(seed)
    tried = []
    for number in range(24):
        candidate = with_rows(int(rng.integers(2, 30)) * 8, int(rng.integers(2, 33)))
        tried.append(observation(number, candidate, truth.fails(candidate) or "ok"))
    runs = runs_of_observations(tried, hardware=B300, model=KIMI).runs
    lessons = learn_from(runs, (), hardware=B300, model=KIMI)
    hidden = {"verify_rows_per_rank": row_limit, "q_len": float(q_len_max)}
    for limit in lessons.proposals.limits:
        assert limit.known_good is not None
        assert limit.known_bad is not None
        if limit.quantity in hidden:
            assert limit.known_good <= hidden[limit.quantity] < limit.known_bad, limit
    if any(run.ok for run in runs):
        assert not lessons.proposals.unexplained


def test_a_tightened_limit_changes_the_next_plan(tmp_path: Path) -> None:
    """A failure at 576 rows on our box: the next plan stays below it."""
    before, _ = tok_per_s()
    assert before > 400
    base = tmp_path / "mine.toml"
    base.write_text(
        '# our box\n[[limit]]\nid = "OURS"\ntitle = "rows"\nshape = "at_most"\nquantity = "verify_rows_per_rank"\n'
        'known_good = 288 # 32 x 9\nknown_bad = 600\nstatus = "suspected"\nconsequence = "crash"\nseen_on = "x"\n'
        'when = { sm = 103, heads_per_rank = 8 }\n[[limit.evidence]]\nref = "run 1"\noutcome = "ran"\n'
    )
    path = ledger_of(tmp_path, observation(1, with_rows(36)), observation(2, with_rows(48), "cublas-exec-failed"))
    out = tmp_path / "next.toml"
    done = call(path, "--limits", base, "--out", out)
    assert done.exit_code == 0, done.output
    (ours,) = (limit for limit in read_limits(out) if limit.id == "OURS")
    assert (ours.known_good, ours.known_bad) == (324, 432)
    text = out.read_text()
    assert "# our box" in text
    assert "# 32 x 9" in text
    assert "-known_good = 288" in done.output
    after, _ = tok_per_s((out,))
    assert after <= 324


def test_new_limits_come_with_scope_and_stand_in_a_plan(tmp_path: Path) -> None:
    """Out of memory at capture is no limit that is built in."""
    path = ledger_of(
        tmp_path,
        observation(1, with_rows(64)),
        observation(2, with_rows(96), "oom-capture"),
        observation(3, with_rows(128), "oom-capture"),
    )
    out = tmp_path / "limits.toml"
    assert call(path, "--out", out).exit_code == 0
    (found,) = read_limits(out)
    assert (found.quantity, found.known_good, found.known_bad) == ("max_running_requests", 64, 96)
    assert found.status is LimitStatus.ESTABLISHED
    rows, _ = tok_per_s((out,))
    assert rows <= 64 * 9


def test_a_newer_engine_mends_a_limit() -> None:
    """Two good runs beyond the known bad value on 0.6.0; a failure there, or one run alone, is not enough."""
    limits = load_limits()
    good = [run("a", with_rows(256), version="0.6.0"), run("b", with_rows(288), version="0.6.1")]
    (found,) = revise_limits(limits, good, hardware=B300, model=KIMI).revisions
    assert (found.after.id, found.after.status, found.after.fixed_in) == (
        "B300-MLA-VERIFY-ROWS", LimitStatus.FIXED_IN, "0.6.0",
    )  # fmt: skip
    one = revise_limits(limits, good[:1], hardware=B300, model=KIMI)
    assert not one.revisions
    assert any("ran well at 2304" in text for text in one.disputed)
    failing = [*good, run("c", with_rows(256), "cublas-exec-failed", version="0.6.2")]
    assert not revise_limits(limits, failing, hardware=B300, model=KIMI).revisions
    text = amended_text("", (), (found,))
    assert 'fixed_in = "0.6.0"' in text


def test_contradictions_stand_side_by_side() -> None:
    """The same launch ran and failed for a known cause: neither is evidence, both are shown."""
    runs = [run("a", with_rows(64)), run("b", with_rows(64), "cublas-exec-failed"), run("c", with_rows(32))]
    found = propose_limits(runs, hardware=B300, model=KIMI)
    assert [(pair.good.ref, pair.bad.ref) for pair in found.contradictions] == [("a", "b")]
    assert not found.limits
    lines = learn_from(runs, load_limits(), hardware=B300, model=KIMI).lines()
    at = lines.index("CONTRADICTION, the same launch on the same engine:")
    assert lines[at + 1 : at + 3] == ["  a: ok", "  b: cublas-exec-failed"]


def test_runs_that_do_not_fit_one_threshold_change_nothing() -> None:
    runs = [run("a", with_rows(192)), run("b", with_rows(144), "cublas-exec-failed")]
    found = revise_limits(load_limits(), runs, hardware=B300, model=KIMI)
    assert not found.revisions
    assert any("do not fit one threshold" in text for text in found.disputed)


def test_q_len_faults_do_not_move_the_row_limit() -> None:
    """An illegal address at 13 tokens and 1300 rows is the q_len fault, not a lower row limit."""
    found = revise_limits(
        load_limits(), [run("a", with_rows(100, 12), "cuda-illegal-address-capture")], hardware=B300, model=KIMI
    )
    assert not found.revisions
    assert ("B300-GRAPH-Q-LEN", ("a",)) in found.confirmed


# -- bad input -------------------------------------------------------------------------------------------------------
def test_mixed_hardware_is_refused_unless_chosen(tmp_path: Path) -> None:
    path = ledger_of(tmp_path, observation(1, with_rows(64)), observation(2, with_rows(64), hardware="rtx_pro_6000"))
    with pytest.raises(InputError, match=r"b300, rtx_pro_6000.*--hardware"):
        CliRunner().invoke(learn, [str(path)], catch_exceptions=False)
    assert call(path, "--hardware", "b300").exit_code == 0
    with pytest.raises(InputError, match="no observations"):
        CliRunner().invoke(learn, [str(path), "--hardware", "h200"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ((), "give a ledger or --field-notes"),
        (("x.db", "--field-notes"), "give a ledger or --field-notes"),
        (("absent.db",), "no such ledger"),
        (("--field-notes", "--out", "absent/x.toml"), "no place for a file"),
        (("--field-notes", "--limits", "absent.toml"), "absent.toml"),
        (("--field-notes", "--fit", "x.json"), "--fit needs the runs of a ledger"),
    ],
)
def test_bad_input_is_told_and_nothing_is_written(
    argv: tuple[str, ...], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=text):
        CliRunner().invoke(learn, list(argv), catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "limits.toml"
    out.write_text("mine\n")
    assert isinstance(call("--field-notes", "--out", out).exception, InputError)
    assert out.read_text() == "mine\n"


def test_settings_of_a_plain_command_are_read_from_it() -> None:
    argv = (
        "python",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "x",
        "--tp-size",
        "8",
        "--max-running-requests",
        "64",
    )
    found = runs_of_observations(
        [observation(1, BASE).replace(candidate=None, argv=argv), observation(2, BASE).replace(candidate=None)],
        hardware=B300,
        model=KIMI,
    )
    assert [one.candidate.max_running_requests for one in found.runs] == [64]
    assert len(found.left_out) == 1


def test_json_answer(tmp_path: Path) -> None:
    done = call("--field-notes", "--format", "json")
    assert {"lines", "limits", "revised", "diff", "notes"} == set(json.loads(done.output))


def test_fit_writes_a_calibration(tmp_path: Path) -> None:
    path = ledger_of(
        tmp_path,
        *(
            observation(n, with_rows(64), tok_per_s=60.0 * c, step_s=0.02, accept_len=4.4, concurrency=c,
                        context_tok=1024, output_tok=1024)
            for n, c in enumerate((1, 16, 64), start=1)
        ),
    )  # fmt: skip
    out = tmp_path / "calibration.json"
    done = call(path, "--fit", out)
    assert done.exit_code == 0, done.exception
    assert json.loads(out.read_text())
    assert "3 timed runs" in done.output
