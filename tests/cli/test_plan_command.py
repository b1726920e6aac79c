"""``plan-config --hw ... --target-c ...``: formats, JSON keys, exit codes, the same bytes for the same question.

Structure is pinned, figures are not: those belong to the models and move with them.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.cli import main

HEADLINE = ("--hw", "b300", "--target-c", "64")

PLAN_KEYS = {
    "status",
    "launch",
    "effective",
    "predicted",
    "binding",
    "ties",
    "runners_up",
    "refused",
    "conflict",
    "skipped",
    "assumptions",
    "versions",
}
EFFECTIVE_KEYS = {
    "tp_size",
    "ep_size",
    "attention_dp_size",
    "replicas",
    "speculation",
    "budget",
    "topk",
    "q_len",
    "max_running_requests",
    "cuda_graph",
    "cuda_graph_max_bs",
    "enable_nccl_nvls",
    "attention_backend",
    "page_size",
    "kv_cache_dtype",
    "dialect",
    "engine_version",
}
PREDICTED_KEYS = {"tok_per_s", "accept_len", "step_s", "break_even_accept_len"}
BINDING_KEYS = {"id", "plan", "known_good", "known_bad", "margin_frac", "cost_tok_per_s"}
PROVENANCES = {"measured", "table", "datasheet", "fitted", "derived", "assumed"}


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``plan-config``."""
    with pytest.raises(SystemExit) as exit_:
        main(list(argv))
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(exit_.value.code or 0), captured.out, captured.err


def plan_json(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run(capsys, *argv, "--format", "json")
    assert err == ""
    return code, json.loads(out)


def test_text_has_its_parts_in_the_order_of_reading(capsys):
    code, out, err = run(capsys, *HEADLINE)
    assert (code, err) == (0, "")
    starts = ["PLAN  b300", "LIMITS", "REFUSED", "ASSUMED", "SAFE", "NEXT", "SOURCES", "ENGINE", "LAUNCH"]
    found = [next(i for i, line in enumerate(out.splitlines()) if line.startswith(start)) for start in starts]
    assert found == sorted(found)


def test_no_line_of_the_text_is_too_wide_to_read(capsys):
    _, out, _ = run(capsys, *HEADLINE)
    assert [line for line in out.splitlines() if len(line) > 200] == []


def test_json_has_the_promised_keys(capsys):
    code, plan = plan_json(capsys, *HEADLINE)
    assert code == 0
    assert plan.keys() >= PLAN_KEYS
    assert plan["status"] == "optimal"
    assert plan["effective"].keys() >= EFFECTIVE_KEYS
    assert plan["predicted"].keys() >= PREDICTED_KEYS
    assert plan["launch"].keys() == {"argv", "env"}
    assert all(isinstance(word, str) for word in plan["launch"]["argv"])
    assert isinstance(plan["launch"]["env"], dict)
    for limit in plan["binding"]:
        assert limit.keys() >= BINDING_KEYS


def test_every_estimate_is_ordered_and_has_a_provenance(capsys):
    _, plan = plan_json(capsys, *HEADLINE)
    for key in PREDICTED_KEYS:
        estimate = plan["predicted"][key]
        if estimate is None:
            assert key == "break_even_accept_len"
            continue
        assert estimate.keys() >= {"value", "low", "high", "provenance"}
        assert estimate["low"] <= estimate["value"] <= estimate["high"]
        assert estimate["provenance"] in PROVENANCES


def test_json_is_strict(capsys):
    """NaN and Infinity are not JSON; a reader in another language would refuse the answer."""
    _, out, _ = run(capsys, *HEADLINE, "--format", "json")

    def refuse(word: str) -> float:
        raise AssertionError(word)

    json.loads(out, parse_constant=refuse)


@pytest.mark.parametrize("format_", ["text", "json", "argv", "env"])
def test_same_question_same_bytes_in_two_processes(format_: str, tmp_path: Path):
    def printed(seed: str) -> bytes:
        done = subprocess.run(
            [sys.executable, "-m", "planner.cli", *HEADLINE, "--format", format_],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=120,
        )
        assert done.stderr == b""
        return done.stdout

    first = printed("1")
    assert first == printed("2")
    assert first if format_ != "env" else True


def test_argv_is_the_launch_of_the_json_one_line_a_replica(capsys):
    _, plan = plan_json(capsys, *HEADLINE)
    code, out, _ = run(capsys, *HEADLINE, "--format", "argv")
    assert code == 0
    assert [shlex.split(line) for line in out.splitlines()] == [launch["argv"] for launch in plan["launches"]]
    assert plan["launches"][0] == plan["launch"]
    assert len(plan["launches"]) == plan["effective"]["replicas"]


def test_replicas_get_their_own_gpus_and_ports(capsys):
    """Two servers on the same GPUs, or on one port, would not start. Line n of env belongs to line n of argv."""
    pins = (*HEADLINE, "--tp-size", "4")
    _, plan = plan_json(capsys, *pins)
    assert plan["effective"]["replicas"] == 2
    gpus = [set(launch["env"]["CUDA_VISIBLE_DEVICES"].split(",")) for launch in plan["launches"]]
    assert gpus[0] & gpus[1] == set()
    ports = [launch["argv"][launch["argv"].index("--port") + 1] for launch in plan["launches"]]
    assert ports[0] != ports[1]
    _, out, _ = run(capsys, *pins, "--format", "env")
    assert out.splitlines() == [
        f"CUDA_VISIBLE_DEVICES={launch['env']['CUDA_VISIBLE_DEVICES']}" for launch in plan["launches"]
    ]


def test_env_of_one_server_is_one_assignment_a_line(capsys):
    _, plan = plan_json(capsys, *HEADLINE, "--tp-size", "8")
    code, out, _ = run(capsys, *HEADLINE, "--tp-size", "8", "--format", "env")
    assert code == 0
    assert dict(line.split("=", 1) for line in out.splitlines()) == plan["launch"]["env"]


def test_infeasible_is_an_answer_with_exit_1(capsys):
    ask = (*HEADLINE, "--max-tpot-ms", "1")
    code, plan = plan_json(capsys, *ask)
    assert code == 1
    assert plan["status"] == "infeasible"
    assert (plan["launch"], plan["effective"], plan["predicted"]) == (None, None, None)
    assert plan["conflict"]["ids"] == ["REQUEST-MAX-TPOT"]
    assert plan["conflict"]["relaxations"]
    code, out, _ = run(capsys, *ask)
    assert code == 1
    assert "INFEASIBLE" in out
    assert "TPOT at most 1 ms" in out


@pytest.mark.parametrize("format_", ["argv", "env"])
def test_infeasible_leaves_stdout_empty_where_a_script_reads_it(capsys, format_: str):
    code, out, err = run(capsys, *HEADLINE, "--max-tpot-ms", "1", "--format", format_)
    assert (code, out) == (1, "")
    assert "INFEASIBLE" in err


def test_a_limit_and_a_request_that_conflict_are_both_named(capsys):
    """A tree wider than the known-good q_len with graphs on: the limit and what was asked."""
    pins = ("--budget", "16", "--cuda-graph", "on", "--attention-backend", "triton", "--speculation", "tree")
    pins = (*pins, "--dialect", "field")
    code, plan = plan_json(capsys, *HEADLINE, *pins)
    assert code == 1
    assert "B300-GRAPH-Q-LEN" in plan["conflict"]["ids"]
    assert any("--lift B300-GRAPH-Q-LEN" in text for text in plan["conflict"]["relaxations"])


def test_a_ceiling_without_a_model_is_unknown_not_met(capsys):
    """No prefill table of this machine is at hand: however high the ceiling, nothing says that it is met."""
    ask = ("--hw", "rtx_pro_6000", "--target-c", "64", "--max-ttft-ms", "1e6")
    code, plan = plan_json(capsys, *ask)
    assert (code, plan["status"]) == (1, "unknown")
    assert plan["launch"] is not None
    assert any("TTFT" in text for text in plan["skipped"])


def test_a_ceiling_with_a_model_is_obeyed(capsys):
    code, plan = plan_json(capsys, *HEADLINE, "--max-ttft-ms", "2000")
    assert (code, plan["status"]) == (0, "optimal")
    assert plan["predicted"]["ttft_s"]["value"] <= 2.0


def test_a_lift_is_printed_with_its_reason(capsys):
    lift = ("--lift", "B300-GRAPH-Q-LEN=seen well at 17 on our build")
    code, plan = plan_json(capsys, *HEADLINE, *lift)
    assert code == 0
    assert plan["lifted"] == [{"id": "B300-GRAPH-Q-LEN", "reason": "seen well at 17 on our build"}]
    _, out, _ = run(capsys, *HEADLINE, *lift)
    assert "LIFTED  B300-GRAPH-Q-LEN: seen well at 17 on our build" in out


@pytest.mark.parametrize("argv", [(), ("--help",), ("-h",)])
def test_help_shows_the_headline_command_and_every_subcommand(capsys, argv: tuple[str, ...]):
    from planner.cli import _COMMANDS

    code, out, _ = run(capsys, *argv)
    assert code == 0
    assert "plan-config --hw b300 --target-c 64" in out
    for name in _COMMANDS:
        assert f"\n  {name} " in out


def test_whole_numbers_may_be_written_with_an_exponent(capsys):
    assert plan_json(capsys, "--hw", "b300", "--target-c", "1e2")[1]["workload"]["target_c"] == 100


def test_queueing_admits_fewer_than_asked_and_says_how_long_they_wait(capsys):
    ask = ("--hw", "b300", "--target-c", "512", "--max-tpot-ms", "20")
    code, plan = plan_json(capsys, *ask, "--allow-queue")
    assert code == 0
    assert plan["predicted"]["n_running"] <= 512
    assert plan["predicted"]["tpot_s"]["value"] <= 0.020
    if plan["predicted"]["n_running"] < 512:
        assert plan["predicted"]["wait_s"] > 0
    assert math.isfinite(plan["predicted"]["wait_s"])


@pytest.mark.parametrize("need", ["grammar", "logprobs"])
def test_needs_keep_trees_out_where_the_build_refuses_them(capsys, need: str):
    _, plan = plan_json(capsys, *HEADLINE, "--needs", need)
    assert plan["effective"]["speculation"] != "tree"


def test_a_named_release_gets_only_what_it_has(capsys):
    code, plan = plan_json(capsys, *HEADLINE, "--engine-version", "0.5.23")
    assert code == 0
    assert plan["effective"]["speculation"] in ("off", "chain")
    assert "DDTREE" not in plan["launch"]["argv"]
    assert plan["effective"]["engine_version"] == "0.5.23"


def test_edge_says_what_is_untested(capsys):
    """``--risk edge`` may enter an interval in which nothing was tried; the answer must not read like a safe one."""
    _, plan = plan_json(capsys, *HEADLINE, "--risk", "edge")
    entered = [
        limit["id"] for limit in plan["binding"] if limit["margin_frac"] is not None and limit["margin_frac"] < 0
    ]
    _, out, _ = run(capsys, *HEADLINE, "--risk", "edge")
    assert entered
    for id_ in entered:
        assert f"UNTESTED {id_}" in out
    assert "every limit that is known holds" not in out
    assert "UNTESTED" not in run(capsys, *HEADLINE)[1]
