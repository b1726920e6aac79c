"""``plan-config predict`` and ``plan-config reproduce``."""

from __future__ import annotations

import json

import pytest

from planner.cli import main

COMMON = (
    *("--model-path", "moonshotai/Kimi-K2.6", "--trust-remote-code", "--tp-size", "8", "--context-length", "32768"),
    *("--mem-fraction-static", "0.85", "--attention-backend", "triton", "--enable-nccl-nvls"),
    *("--enforce-disable-flashinfer-allreduce-fusion", "--speculative-algorithm", "DDTREE"),
    *("--speculative-draft-model-path", "z-lab/Kimi-K2.6-DFlash"),
)
BUDGET_16 = (*COMMON, *("--speculative-num-draft-tokens", "17", "--speculative-eagle-topk", "8"))
BUDGET_16 = (*BUDGET_16, "--max-running-requests", "64")
ASK = ("predict", "--hw", "b300", "--target-c", "1", "--dialect", "field")
OFF = ("--model-path", "moonshotai/Kimi-K2.6", "--trust-remote-code", "--tp-size", "8")


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(list(argv))
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(exit_.value.code or 0), captured.out, captured.err


def test_both_figures_of_budget_16_with_graphs(capsys):
    """285 x 5.8 / 4.48 = 369 under the constant-step assumption, and the table-based figure below it."""
    code, out, _ = run(capsys, *ASK, "--format", "json", "--", *BUDGET_16)
    assert code == 0
    found = json.loads(out)
    assert round(found["constant_step"]["value"]) == 369
    assert 255 <= found["predicted"]["tok_per_s"]["value"] <= 315
    assert found["effective"]["q_len"] == 17
    assert [limit["id"] for limit in found["broken"]] == ["B300-GRAPH-Q-LEN"]
    code, out, _ = run(capsys, *ASK, "--", *BUDGET_16)
    assert code == 0
    assert "if a step cost the same at any q_len: 369" in out
    assert "BREAKS  B300-GRAPH-Q-LEN: 17 against known good 9, wrong output" in out


@pytest.mark.parametrize(
    "program", [("python", "-m", "sglang.launch_server"), ("python3.11", "-m", "sglang.launch_server")]
)
def test_the_program_before_the_flags_is_read_over(capsys, program: tuple[str, ...]):
    """A whole command, as it stands in a launch file or in a plan, is what people paste."""
    ask = ("predict", "--hw", "b300", "--target-c", "1")
    assert run(capsys, *ask, "--", *program, *OFF) == run(capsys, *ask, "--", *OFF)


@pytest.mark.parametrize(
    ("hw", "target_c", "pins"),
    [
        ("b300", "64", ("--tp-size", "8")),
        ("b300", "256", ("--speculation", "off", "--tp-size", "8")),
        ("h200", "64", ("--tp-size", "8")),
        ("rtx_pro_6000", "128", ("--attention-dp-size", "4")),
    ],
)
def test_a_plans_own_command_is_predicted_as_planned(capsys, hw: str, target_c: str, pins: tuple[str, ...]):
    """Plan, write argv, read argv, resolve: nothing may change on the way round."""
    ask = ("--hw", hw, "--target-c", target_c)
    _, out, _ = run(capsys, *ask, *pins, "--format", "json")
    plan = json.loads(out)
    build = ("--dialect", plan["effective"]["dialect"], "--engine-version", plan["effective"]["engine_version"])
    code, out, err = run(capsys, "predict", *ask, *build, "--format", "json", "--", *plan["launch"]["argv"])
    assert code == 0, err
    told = json.loads(out)
    assert told["effective"] == plan["effective"]
    assert told["predicted"]["tok_per_s"]["value"] == pytest.approx(plan["predicted"]["tok_per_s"]["value"], rel=0.02)
    assert told["broken"] == []


def test_a_measured_accept_length_replaces_the_models(capsys):
    code, out, _ = run(capsys, *ASK, "--accept-len", "5.8", "--format", "json", "--", *BUDGET_16)
    assert code == 0
    accept = json.loads(out)["predicted"]["accept_len"]
    assert (accept["value"], accept["provenance"]) == (5.8, "measured")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((*ASK, "--accept-len", "0.5", "--", *BUDGET_16), ("--accept-len", "bonus included")),
        ((*ASK, "--accept-len", "nan", "--", *BUDGET_16), ("--accept-len", "'nan'")),
        ((*ASK, "--", *OFF, "--tpp", "8", "--foo"), ("--tpp", "--foo")),
        ((*ASK, "--", *OFF, "--max-running-requests", "many"), ("--max-running-requests", "many")),
        (("predict", "--hw", "b30", "--target-c", "0", "--", *OFF), ("'b30'", "--target-c")),
        (("predict", "--hw", "a100", "--target-c", "1", "--", *OFF), ("nothing was measured",)),
        (ASK, ("ARGV",)),
    ],
)
def test_bad_input_is_refused(capsys, argv: tuple[str, ...], words: tuple[str, ...]):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    for word in words:
        assert word in err


def test_reproduce_lists_every_run_in_order_and_all_verdicts_are_right(capsys):
    code, out, err = run(capsys, "reproduce")
    assert (code, err) == (0, "")
    runs = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| FN-")]
    assert runs[:18] == [f"FN-{n:02d}" for n in range(1, 19)]
    assert "18 of 18 verdicts right." in out
    assert {"FN-01", "FN-03", "FN-08", "FN-14"} <= set(runs[18:])


def test_reproduce_as_json_marks_what_was_calibrated(capsys):
    code, out, _ = run(capsys, "reproduce", "--format", "json")
    assert code == 0
    rows = {row["id"]: row for row in json.loads(out)}
    assert {id_ for id_, row in rows.items() if row["role"] == "calibrate"} == {"FN-01", "FN-02", "FN-03"}
    for id_ in ("FN-08", "FN-14"):
        predicted = rows[id_]["predicted_tok_per_s"]
        assert predicted["low"] <= rows[id_]["measured_tok_per_s"] <= predicted["high"], id_
    for id_ in ("FN-15", "FN-16"):
        assert "allreduce_latency_s" in rows[id_]["missing"]
