"""``fit`` as a function: rows and observations in, calibration and report out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from planner.domain import Candidate, Observation, Outcome, Speculation
from planner.errors import InputError
from planner.estimate.step_cost import fit_step_cost, read_calibration, write_calibration
from planner.estimate.step_cost.default import packaged_calibration
from planner.search.fitting import fit

PLAIN = {"tp_size": 8, "context_tok": 1024, "output_tok": 1024, "attention_backend": "triton", "nvls": True}
TREE = {**PLAIN, "q_len": 9, "kind": "tree", "topk": 4, "draft": "kimi-k2.6-dflash", "temperature": 0, "domain": "code"}
ROWS = [
    {**PLAIN, "id": "off-1", "concurrency": 1, "step_s": 0.0070},
    {**PLAIN, "id": "off-32", "concurrency": 32, "step_s": 0.0165},
    {**TREE, "id": "tree-1", "concurrency": 1, "accept_len": 4.4, "step_s": 0.0155},
    {**TREE, "id": "tree-32", "concurrency": 32, "accept_len": 4.6, "step_s": 0.0455},
]
CANDIDATE = Candidate(
    tp_size=8,
    speculation=Speculation.TREE,
    budget=8,
    topk=4,
    q_len=9,
    max_running_requests=128,
    cuda_graph_max_bs=128,
    attention_backend="triton",
    mem_fraction_static=0.85,
)


def observation(id_: str, **fields: object) -> Observation:
    base = {
        "id": id_,
        "hardware": "b300",
        "model": "kimi-k2.6",
        "drafter": "kimi-k2.6-dflash",
        "engine_version": "0.5.23",
        "candidate": CANDIDATE,
        "concurrency": 64,
        "context_tok": 1024,
        "output_tok": 1024,
        "source": "test",
    }
    return Observation(**(base | fields))


def b300(rows: object, **more: object):
    return fit(rows, hw="b300", model="kimi-k2.6", **more)


def test_the_report_says_what_moved_and_how_well_it_fits():
    result = b300(ROWS, drafter="kimi-k2.6-dflash", source="runs.csv")
    report = result.report
    assert "field notes FN-01" in report.starts_from
    assert [row.label for row in report.residuals] == ["off-1", "off-32", "tree-1", "tree-32"]
    assert report.mape < 0.05
    assert report.n_left_out == 4
    assert report.left_out_mape is not None
    assert report.left_out_mape > report.mape
    step_host = next(p for p in report.parameters if p.name == "step_host_s")
    assert step_host.after_sd < step_host.before_sd
    spans = {span.name: (span.low, span.high) for span in report.domain}
    assert spans["running requests"] == (1, 128)
    (curve,) = report.acceptance
    assert (curve.domain, curve.temperature, len(curve.points)) == ("code", 0.0, 2)


def test_left_out_figures_are_those_of_a_fit_without_the_row():
    """Protects against leaving nothing out: an in-sample figure looks better than it is."""
    report = b300(ROWS).report
    base = packaged_calibration(*_loaded())
    others = fit_step_cost(ROWS[1:], hw="b300", model="kimi-k2.6", base=base)
    assert report.residuals[0].left_out_s == pytest.approx(others.predict(ROWS[:1])[0].value, rel=1e-9)


def _loaded():
    from planner.data import load_hardware, load_model

    return load_hardware("b300"), load_model("kimi-k2.6")


def test_a_fit_starts_from_the_packaged_calibration_and_keeps_what_it_spans():
    """Two plain runs must not make the planner forget what trees cost on this machine."""
    updated = b300(ROWS[:2])
    assert updated.calibration.domain.kinds == {0, 2}
    alone = fit_step_cost(ROWS[:2], hw="b300", model="kimi-k2.6")
    base = packaged_calibration(*_loaded())
    assert base is not None
    packaged = base.posterior.value("spec_step_s")
    assert abs(updated.calibration.posterior.value("spec_step_s") - packaged) < abs(
        alone.posterior.value("spec_step_s") - packaged
    )


def test_a_calibration_survives_its_file():
    result = b300(ROWS, drafter="kimi-k2.6-dflash")
    text = write_calibration(result.calibration)
    again = read_calibration(text)
    assert write_calibration(again) == text
    assert np.array_equal(again.posterior.mean, result.calibration.posterior.mean)
    assert [point.accept_len for point in again.accept_points] == [4.4, 4.6]
    assert json.loads(text)["observations"][0]["id"] == "off-1"


def test_numpy_rows_can_be_written():
    """A row from a table of NumPy values, with an empty cell, is a row like any other."""
    row = {**PLAIN, "concurrency": np.int64(8), "step_s": np.float64(0.0105), "accept_len": float("nan")}
    text = write_calibration(b300([row]).calibration)
    assert json.loads(text)["observations"][0]["concurrency"] == 8


def test_what_cannot_be_used_is_counted_with_its_reason():
    runs = [
        observation("a", step_s=0.081, accept_len=4.5),
        observation("b", hardware="h200", step_s=0.1, accept_len=4.5),
        observation("c", model="other", step_s=0.1, accept_len=4.5),
        observation("d", outcome=Outcome(cause="oom")),
        observation("e", tok_per_s=3000.0),
        observation("f", candidate=None, step_s=0.1),
        observation("g", accept_len=4.5),
    ]
    report = b300(runs).report
    assert len(report.residuals) == 1
    assert {line.removeprefix("1 left out: ") for line in report.left_out} == {
        "hardware h200",
        "model other",
        "the run failed (oom)",
        "speculation without an accept length: tokens cannot be turned into steps",
        "no settings recorded (tp_size, q_len)",
        "nothing was timed (step_s, tpot_s or tok_per_s)",
    }


def test_settings_that_the_server_told_stand_in_for_a_candidate():
    """A benchmark of a server that runs already has no plan: what /server_info says is enough."""
    told = (("tp_size", 8), ("attention_backend", "triton"), ("enable_nccl_nvls", True), ("dp_size", 1))
    run = observation("a", candidate=None, drafter=None, effective=told, concurrency=32, tpot_s=0.0165)
    (row,) = b300([run]).calibration.rows
    assert (row.row["tp_size"], row.row["kind"], row.row["nvls"]) == (8, "off", True)


def test_more_clients_than_places_count_as_places():
    """With 256 clients on 128 places 128 run: a step priced at 256 would come out half as slow as it is."""
    few = b300([observation("a", concurrency=256, tok_per_s=4700.0, accept_len=4.5)]).calibration.rows[0]
    assert few.row["concurrency"] == 128
    assert few.row["step_s"] == pytest.approx(128 * 4.5 / 4700.0)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "nothing to fit: no observations"),
        ([observation("a", hardware="h200", step_s=0.1)], "nothing to fit: 1 left out: hardware h200"),
        ([*ROWS, ROWS[0]], "one observation given twice"),
        ([*ROWS, {**ROWS[0], "step_s": 0.012}], "contradict each other"),
        ([{**ROWS[0], "step_s": 7.0}], "is it in ms (0.007 s)?"),
        ([{**ROWS[2], "accept_len": 9.5}], "9.5 is above its cap of 8 (q_len 9, block of 8)"),
        ([{**ROWS[0], "accept_len": 2.0}], "2 is above its cap of 1"),
        ([ROWS[2], {**ROWS[3], "accept_len": 7.0}], "contradict each other: accept lengths 4.4 and 7 at budget 8"),
        ([{**ROWS[2], "bonus_counted": False}, {**ROWS[3], "bonus_counted": True}], "they are not pooled"),
        ([{**ROWS[0], "attention_dp_size": 3}], "do not divide tp_size 8"),
        ([{**ROWS[0], "prefix_hit_frac": 40}], "must be at most 1"),
        ([observation("a", step_s=0.1, accept_len=4.5)] * 2, "observation a is given twice"),
        ([7], "entry 0 is a int"),
        ("runs.csv", "observations are one str"),
    ],
)
def test_bad_observations_are_refused_with_the_reason(rows, text):
    with pytest.raises(InputError) as caught:
        b300(rows, drafter="kimi-k2.6-dflash")
    assert text in str(caught.value)


def test_a_run_that_the_fit_cannot_explain_is_pointed_out():
    odd = {**ROWS[1], "concurrency": 64, "step_s": 0.09}
    notes = b300([*ROWS[:2], odd]).report.notes
    assert any(note.startswith("LOOK: off-32 took 90 ms") for note in notes)


def test_accept_lengths_without_a_drafter_are_named():
    rows = [{**ROWS[2], "draft": "some-drafter"}]
    result = b300(rows)
    assert result.calibration.accept_points == ()
    assert any("no drafter is named" in note for note in result.report.notes)


def test_traffics_are_not_pooled():
    """Accept length belongs to a traffic: chat beside code is two curves, not a contradiction."""
    chat = {**ROWS[3], "accept_len": 3.0, "domain": "chat", "temperature": 1.0}
    report = b300([ROWS[2], chat], drafter="kimi-k2.6-dflash").report
    assert [(curve.domain, len(curve.points)) for curve in report.acceptance] == [("chat", 1), ("code", 1)]


def test_many_observations_are_left_out_in_tenths():
    """A ledger of a year must not take a fit for each run, nor a matrix of runs times runs."""
    start = fit_step_cost(hw="b300", model="kimi-k2.6")
    rows = [{**PLAIN, "concurrency": 1 + i % 64, "context_tok": 500 + 10 * i} for i in range(120)]
    noise = np.random.default_rng(0).normal(1.0, 0.02, len(rows))
    measured = [
        {**row, "step_s": 1.05 * answer.value * error}
        for row, answer, error in zip(rows, start.predict(rows), noise, strict=True)
    ]
    report = b300(measured).report
    assert report.n_left_out == 120
    assert report.left_out_mape < 0.05
    assert all(row.left_out_s is not None for row in report.residuals)
