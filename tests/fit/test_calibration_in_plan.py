"""``--calibration``: a plan and a prediction that stand on runs of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.domain import Workload
from planner.errors import InputError
from planner.estimate.step_cost import write_calibration
from planner.search.calibrations import accept_points_of, load_calibration
from planner.search.fitting import fit
from planner.search.planning import make_plan
from planner.search.request import Question, WorkloadInput

PLAIN = {"tp_size": 8, "context_tok": 1024, "output_tok": 1024, "attention_backend": "triton", "nvls": True}
TREE = {**PLAIN, "q_len": 9, "kind": "tree", "topk": 4, "draft": "kimi-k2.6-dflash", "temperature": 0}


def written(path: Path, *rows: dict[str, object]) -> Path:
    result = fit(rows, hw="b300", model="kimi-k2.6", drafter="kimi-k2.6-dflash", source=path.name)
    path.write_text(write_calibration(result.calibration), encoding="utf-8")
    return path


@pytest.fixture
def slow_trees(tmp_path: Path) -> Path:
    """A server whose trees take twice as long as the packaged calibration says, and accept less."""
    rows = [{**TREE, "concurrency": c, "accept_len": 2.6, "step_s": s} for c, s in ((1, 0.028), (64, 0.150))]
    return written(tmp_path / "slow.json", *rows, {**PLAIN, "concurrency": 64, "step_s": 0.0245})


def asked(calibration: Path | None, **more: object):
    question = Question(hw="b300", workload=WorkloadInput(target_c=64, **more), calibration=calibration)
    return make_plan(question)


def test_the_plan_follows_the_calibration_and_names_it(slow_trees):
    before, after = asked(None), asked(slow_trees)
    assert before.effective.speculation.value != "off"
    assert after.effective.speculation.value == "off"
    assert after.versions.calibration.startswith("slow.json (sha256 ")
    assert any("slow.json" in source for source in after.sources)


def test_accept_lengths_of_the_calibration_stand_in_for_the_profile(tmp_path):
    path = written(tmp_path / "c.json", {**TREE, "concurrency": 8, "accept_len": 3.1, "step_s": 0.021})
    plan = asked(path)
    assert plan.effective.speculation.value != "off"
    assert plan.predicted.accept_len.value < 3.4
    assert "c.json" in plan.predicted.accept_len.note


def test_accept_lengths_of_the_asked_traffic_are_taken(tmp_path):
    code = {**TREE, "concurrency": 8, "accept_len": 4.6, "step_s": 0.021, "domain": "code"}
    chat = {**TREE, "concurrency": 16, "accept_len": 3.0, "step_s": 0.027, "domain": "chat"}
    path = written(tmp_path / "c.json", code, chat)
    from planner.data import load_drafter, load_hardware, load_model

    model = load_model("kimi-k2.6")
    own = load_calibration(path, load_hardware("b300"), model)
    for domain, accept_len in (("code", 4.6), ("chat", 3.0)):
        load = Workload(target_c=8, domain=domain)
        points = accept_points_of(own, load_drafter("kimi-k2.6-dflash"), model, load)
        assert [point.accept_len for point in points] == [accept_len]


def test_a_question_outside_the_calibration_is_marked(tmp_path):
    """Packaged and own runs span up to 128 requests: two replicas with 512 each are more than twice that."""
    path = written(tmp_path / "c.json", {**PLAIN, "concurrency": 8, "step_s": 0.0105})
    inside = asked(path)
    question = Question(hw="b300", workload=WorkloadInput(target_c=1024), calibration=path, drafter="none")
    outside = make_plan(question)
    assert not inside.predicted.step_s.extrapolated
    assert outside.predicted.step_s.extrapolated
    assert any("measured running requests 1 to 128" in source for source in outside.sources)


def test_hardware_without_predictions_gets_one_from_a_calibration(tmp_path):
    rows = [{"tp_size": 8, "concurrency": c, "step_s": s} for c, s in ((8, 0.040), (64, 0.090))]
    result = fit(rows, hw="mi355x", model="kimi-k2.6")
    path = tmp_path / "amd.json"
    path.write_text(write_calibration(result.calibration), encoding="utf-8")
    question = Question(
        hw="mi355x", workload=WorkloadInput(target_c=8), calibration=path, drafter="none", engine_version="0.5.23"
    )
    plan = make_plan(question)
    assert plan.versions.calibration.startswith("amd.json")


@pytest.mark.parametrize(
    ("name", "text", "hw", "message"),
    [
        ("no.json", None, "b300", "No such file or directory; check the path"),
        ("a.json", "id,step_s\n1,2\n", "b300", "a.json:1: not JSON"),
        ("a.json", "{}", "b300", "not a step-cost calibration; write one with plan-config fit"),
        ("a.json", '{"what": "step cost", "schema_version": 7}', "b300", "schema_version 7; this version reads 1"),
        ("own", None, "h200", "the calibration was made on b300, not on h200; measure there"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, slow_trees, name, text, hw, message):
    path = slow_trees if name == "own" else tmp_path / name
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        make_plan(Question(hw=hw, workload=WorkloadInput(target_c=8), calibration=path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("covariance", [[1.0]]),
        ("covariance", "none"),
        ("domain", {}),
        ("residual_frac", -1),
        ("observations", [{"step_s": 1}]),
        ("accept_points", [{"budget": 8}]),
        ("parameters", {}),
    ],
)
def test_a_damaged_file_is_refused_without_a_traceback(slow_trees, field, value):
    body = json.loads(slow_trees.read_text(encoding="utf-8"))
    body[field] = value
    slow_trees.write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(InputError):
        asked(slow_trees)


def test_the_command_line_takes_it(run, slow_trees):
    ran = run("--hw", "b300", "--target-c", "64", "--calibration", slow_trees, "--format", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["versions"]["calibration"].startswith("slow.json")
    refused = run("--hw", "h200", "--target-c", "64", "--calibration", slow_trees)
    assert refused.code == 2
    assert "--calibration: the calibration was made on b300" in refused.err


def test_predict_takes_it(run, slow_trees):
    words = ["--model-path", "moonshotai/Kimi-K2.6", "--tp-size", "8", "--max-running-requests", "64"]
    words += ["--attention-backend", "triton", "--trust-remote-code"]
    base = ("predict", "--hw", "b300", "--target-c", "64", "--drafter", "none", "--format", "json")
    plain = json.loads(run(*base, "--", *words).out)
    own = json.loads(run(*base, "--calibration", slow_trees, "--", *words).out)
    assert own["predicted"]["tok_per_s"]["value"] != plain["predicted"]["tok_per_s"]["value"]
    assert any("slow.json" in source for source in own["sources"])
