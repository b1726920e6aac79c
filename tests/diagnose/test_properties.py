# ruff: noqa: E501
"""What must hold for every log: noise, prefixes and consequences change nothing; damage never raises."""

from __future__ import annotations

import io
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.diagnose import Diagnoser, Diagnosis, diagnose_lines, diagnose_stream
from planner.diagnose.catalogue import causes
from planner.errors import InputError
from tests.diagnose.strategies import consequences, noise_lines, prefixes

CASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))["case"]
SYMPTOMS = {"garbage-output", "accept-len-1", "throttled-max-running", "healthy", "unknown", "kv-pool-too-small"}
WEAK = {"nccl-error", "hang-watchdog", "collective-timeout", "device-side-assert", "capture-failed-unknown"}

cases = st.sampled_from(CASES)
quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def lines_of(case: dict[str, Any]) -> list[str]:
    log: str = case["log"]
    return log.strip("\n").split("\n")


def is_failure(case: dict[str, Any]) -> bool:
    return case["slug"] not in SYMPTOMS | WEAK and not case.get("symptom", False)


@quick
@given(cases, noise_lines)
def test_noise_between_lines_changes_nothing(case: dict[str, Any], noise: list[tuple[str, float]]) -> None:
    lines = lines_of(case)
    has_args = any("server_args=" in line for line in lines)
    for text, place in noise:
        if has_args and "server_args" in text:
            continue
        lines.insert(0 if "server_args" in text else int(place * len(lines)), text)  # it opens a start
    assert diagnose_lines(lines).cause == case["slug"]


@quick
@given(cases, prefixes)
def test_prefixes_of_collectors_change_nothing(case: dict[str, Any], prefix: str) -> None:
    lines = [prefix + line for line in lines_of(case)]
    assert diagnose_lines(lines).cause == case["slug"]


@quick
@given(cases.filter(is_failure), consequences)
def test_consequences_after_a_failure_change_nothing(case: dict[str, Any], later: list[str]) -> None:
    """A dead rank makes the others fail in their own words: those are victims."""
    diagnosis = diagnose_lines([*lines_of(case), *later])
    assert diagnosis.cause == case["slug"]


@quick
@given(
    st.lists(st.sampled_from([case for case in CASES if case["slug"] == "healthy"]), min_size=1, max_size=3),
    noise_lines,
)
def test_healthy_logs_stay_healthy(parts: list[dict[str, Any]], noise: list[tuple[str, float]]) -> None:
    lines = [line for part in parts[:1] for line in lines_of(part)]
    for text, place in noise:
        if "server_args" not in text:
            lines.insert(int(place * len(lines)), text)
    assert diagnose_lines(lines).healthy


@quick
@given(cases, st.floats(0, 1))
def test_a_truncated_log_gives_the_same_or_less(case: dict[str, Any], share: float) -> None:
    """Cut at the end: the same cause, a weaker one of the same log, or none; never a confident third one."""
    lines = lines_of(case)
    whole = diagnose_lines(lines)
    cut = diagnose_lines(lines[: max(1, int(share * len(lines)))])
    assert related(cut, whole) or cut.confidence <= whole.confidence or not cut.lines


def related(cut: Diagnosis, whole: Diagnosis) -> bool:
    return cut.cause in {whole.cause, "unknown", "healthy"} | {item.slug for item in whole.secondary} | {
        item.slug for item in causes()[whole.cause].not_
    }


@quick
@given(cases, st.randoms(use_true_random=False))
def test_order_of_unrelated_lines_changes_nothing(case: dict[str, Any], random: Any) -> None:
    """Lines of other ranks arrive in any order around the failure."""
    others = [f"[2026-05-28 11:00:00 TP{rank}] Init torch distributed begin." for rank in range(1, 8)]
    random.shuffle(others)
    middle = random.randint(0, len(others))
    lines = others[:middle] + lines_of(case) + others[middle:]
    assert diagnose_lines(lines).cause == case["slug"]


@quick
@given(cases, st.integers(1, 64))
def test_blocks_lines_and_streams_agree(case: dict[str, Any], size: int) -> None:
    lines = lines_of(case)
    raw = ("\n".join(lines) + "\n").encode()
    diagnoser = Diagnoser()
    for line in lines:
        diagnoser.feed(line + "\n")
    by_stream = diagnose_stream(io.BytesIO(raw))
    assert by_stream == diagnose_lines(lines)
    assert diagnoser.result() == by_stream
    assert diagnoser.result() == by_stream  # asking twice changes nothing

    class Dripping(io.RawIOBase):
        def __init__(self) -> None:
            self.at = 0

        def read(self, n: int = -1) -> bytes:
            part = raw[self.at : self.at + size]
            self.at += len(part)
            return part

    assert diagnose_stream(Dripping()) == by_stream  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=3000))
def test_random_bytes_never_raise_anything_else(data: bytes) -> None:
    try:
        diagnosis = diagnose_stream(io.BytesIO(data))
    except InputError:
        return
    assert diagnosis.cause in causes()


@settings(max_examples=200, deadline=None)
@given(cases, st.data())
def test_damaged_logs_never_raise(case: dict[str, Any], data: st.DataObject) -> None:
    """Characters lost, doubled or replaced inside real words reach the parsers behind the prefilter."""
    text = list(case["log"])
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from(["", "9" * 40, "{", "'", "[", "=", "\r", "-", ".", "é", text[at] * 3]))
    diagnosis = diagnose_lines([*"".join(text).split("\n"), "x"])
    assert diagnosis.cause in causes()
    assert 0 <= diagnosis.confidence <= 1
    diagnosis.to_json()


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["slug"] != "unknown"][::7], ids=lambda case: case["slug"]
)
def test_a_restart_forgets_the_first_start(case: dict[str, Any]) -> None:
    """A service that crashed and came back is healthy; that the first start failed is said beside."""
    again = [
        "[2026-05-28 12:00:00] server_args={'model_path': 'm', 'max_running_requests': 8, 'custom_sigquit_handler': None}",
        "[2026-05-28 12:05:00] The server is fired up and ready to roll!",
    ]
    fatal = "[2026-05-28 11:10:00] Received sigquit from a child process. It usually means the child failed."
    diagnosis = diagnose_lines([*lines_of(case), fatal, *again])
    assert diagnosis.cause == "healthy"
    assert diagnosis.facts.n_runs >= 2


def test_a_restart_that_is_not_finished_keeps_the_cause() -> None:
    """In a crash loop the log often ends while the next start loads weights."""
    lines = [
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1 GiB.",
        "[2026-05-28 11:10:00] Received sigquit from a child process. It usually means the child failed.",
        "[2026-05-28 12:00:00] server_args={'model_path': 'm', 'custom_sigquit_handler': None}",
        "[2026-05-28 12:00:05] Load weight begin. avail mem=178.20 GB",
    ]
    diagnosis = diagnose_lines(lines)
    assert diagnosis.cause == "oom-capture"
    assert any("earlier start" in note for note in diagnosis.notes)
