"""Faults injected on the stand-in: each ends with the right cause, in time, nothing lost, nothing left behind."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.domain import Candidate
from planner.launch.gate import TimeLimits
from planner.launch.verdict import LaunchReport, Stage
from tests.launch.launch_kit import FAST, SHORT
from tests.launch.standin import FAULTS, Truth

# fault -> (cause, stage, seconds within which the verdict must be there, time limits)
CASES: dict[str, tuple[str, Stage, float, TimeLimits]] = {
    "die_at_once": ("exited", Stage.ALIVE, 10, FAST),
    "die_loading": ("exited", Stage.ALIVE, 10, FAST),
    "oom_startup": ("oom-startup", Stage.ALIVE, 10, FAST),
    "die_capture": ("cuda-illegal-address-capture", Stage.ALIVE, 10, FAST),
    "oom_capture": ("oom-capture", Stage.ALIVE, 10, FAST),
    "cublas": ("cublas-exec-failed", Stage.ALIVE, 10, FAST),
    "missing_module": ("missing-module", Stage.ALIVE, 10, FAST),
    "port_in_use": ("port-in-use", Stage.ALIVE, 10, FAST),
    "nccl": ("collective-timeout", Stage.ALIVE, 10, FAST),
    "segfault": ("exited", Stage.ALIVE, 10, FAST),
    "oom_killed": ("exited", Stage.ALIVE, 10, FAST),
    "never_ready": ("never-ready", Stage.ALIVE, 12, SHORT),
    "never_listens_after_ready": ("never-ready", Stage.ALIVE, 12, SHORT),
    "storm_503": ("unhealthy-503", Stage.HEALTH, 12, SHORT),
    "hang_health": ("hang-generation", Stage.HEALTH, 12, FAST),
    "hang_generate": ("hang-generation", Stage.CANARY, 12, FAST),
    "hang_full_batch": ("hang-generation", Stage.CANARY, 12, FAST),
    "drip": ("slow-answer", Stage.CANARY, 12, FAST),
    "cut": ("connection-lost", Stage.CANARY, 12, FAST),
    "truncated_json": ("bad-answer", Stage.CANARY, 12, FAST),
    "not_json": ("bad-answer", Stage.CANARY, 12, FAST),
    "no_meta": ("bad-answer", Stage.CANARY, 12, FAST),
    "status_400": ("request-refused", Stage.CANARY, 12, FAST),
    "garbage": ("garbage-output", Stage.CANARY, 12, FAST),
    "garbage_batch": ("garbage-output", Stage.CANARY, 12, FAST),
    "one_character": ("garbage-output", Stage.CANARY, 12, FAST),
    "wrong": ("wrong-answer", Stage.CANARY, 12, FAST),
    "accept_one": ("accept-len-1", Stage.CANARY, 12, FAST),
    "stale_cache": ("garbage-output", Stage.CANARY, 12, FAST),
    "no_prefix": ("no-prefix-hit", Stage.CANARY, 12, FAST),
    "throttled": ("throttled-max-running", Stage.SETTINGS, 12, FAST),
    "wrong_backend": ("wrong-settings", Stage.SETTINGS, 12, FAST),
    "no_graphs": ("wrong-settings", Stage.SETTINGS, 12, FAST),
    "wide": ("wrong-settings", Stage.SETTINGS, 12, FAST),
    "info_500": ("request-refused", Stage.SETTINGS, 12, FAST),
    "crash_generate": ("cuda-illegal-address-spec", Stage.CANARY, 12, FAST),
    "exit_generate": ("died-serving", Stage.CANARY, 12, FAST),
    "nan": ("nan-probabilities", Stage.CANARY, 12, FAST),
}
HARMLESS = ("some_503", "clock_jump", "flood", "secret", "binary", "ignore_sigterm", "stray_child")


@pytest.mark.parametrize("fault", CASES)
def test_fault_is_named(
    fault: str, launch_it: Callable[..., LaunchReport], candidate: Candidate, tmp_path: Path
) -> None:
    cause, stage, within_s, limits = CASES[fault]
    start = time.monotonic()
    report = launch_it(Truth(faults=(fault,), seed=1), expected=candidate, limits=limits)
    took_s = time.monotonic() - start
    assert (report.cause, report.stage, report.ok) == (cause, stage, False), report.detail
    assert took_s < within_s
    assert report.left_behind == 0
    assert report.detail
    assert json.loads((tmp_path / "run" / "report.json").read_text())["cause"] == cause
    assert report.observations[-1].outcome.cause == cause


@pytest.mark.parametrize("fault", HARMLESS)
def test_harmless_oddities_pass(fault: str, launch_it: Callable[..., LaunchReport], candidate: Candidate) -> None:
    report = launch_it(Truth(faults=(fault,), seed=1), expected=candidate)
    assert report.ok, f"{report.cause}: {report.detail}"
    assert report.left_behind == 0


def test_every_fault_has_a_case() -> None:
    under_load = {"crash_load"}
    assert set(FAULTS) == set(CASES) | set(HARMLESS) | under_load
    assert len(CASES) >= 25


def test_a_process_that_ignores_sigterm_is_killed(launch_it: Callable[..., LaunchReport]) -> None:
    report = launch_it(Truth(faults=("ignore_sigterm",), seed=1))
    assert "had to be killed" in report.stages[-1].note


def test_secrets_do_not_reach_the_log(launch_it: Callable[..., LaunchReport], tmp_path: Path) -> None:
    """Protects: tokens and keys in the server's own output and in our records."""
    report = launch_it(Truth(faults=("secret",), seed=1), "--api-key", "hunter2")
    assert report.ok, report.detail
    for path in (tmp_path / "run").iterdir():
        text = path.read_text()
        assert "hf_abcdefghij" not in text, path
        assert "hunter2" not in text, path


def test_truths_of_the_field_notes(launch_it: Callable[..., LaunchReport]) -> None:
    """FN-04, FN-06 and FN-07 by hidden truths: rows, width, and garbage that passes a readiness check."""
    rows = launch_it(Truth(row_limit=35, seed=1))
    assert rows.cause == "cublas-exec-failed"
    width = launch_it(Truth(graph_q_len_max=8, seed=1))
    assert width.cause == "cuda-illegal-address-capture"
    garbage = launch_it(Truth(garbage_q_len=9, seed=1))
    assert garbage.cause == "garbage-output"
    eager = launch_it(Truth(garbage_q_len=9, row_limit=1, seed=1), "--disable-cuda-graph")
    assert eager.ok, eager.detail
