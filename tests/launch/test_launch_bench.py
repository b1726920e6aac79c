"""The benchmark: the client's line, statistics, decode lines, counters, devices, and what fails under load."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.diagnose import DecodePoint
from planner.launch.bench import BenchPlan, matrix
from planner.launch.bench_client import Cell, Dataset, client_argv, read_result
from planner.launch.bench_stats import full_batch, median_interval
from planner.launch.measures import bench_measure, soak_measure
from planner.launch.metrics import accept_len_between, parse_metrics
from planner.launch.records import Identity
from planner.launch.verdict import LaunchReport, Stage
from tests.launch.launch_fakes import on_path, put_command
from tests.launch.launch_kit import FAST, standins_of
from tests.launch.standin import Truth

SMALL = BenchPlan(cells=matrix([1, 4], [64], 48), budget_s=12.0, max_repeats=5, prompts_per_client=3, tight_frac=0.2)


def test_matrix_is_measured(launch_it: Callable[..., LaunchReport], tmp_path: Path) -> None:
    measure = bench_measure(SMALL, Identity(hardware="standin", model="m"))
    truth = Truth(accept_len=3.0, step_s=0.003, seed=1)
    report = launch_it(truth, "--decode-log-interval", "4", measures=((Stage.BENCH, measure),))
    assert report.ok, f"{report.cause}: {report.detail}"
    one, four = report.observations
    assert (one.concurrency, four.concurrency) == (1, 4)
    assert one.accept_len is not None
    assert four.accept_len is not None
    assert one.accept_len == pytest.approx(3.0, abs=0.05)
    assert four.accept_len == pytest.approx(3.0, abs=0.05)
    assert four.tok_per_s is not None
    assert one.tok_per_s is not None
    assert four.tok_per_s > 2 * one.tok_per_s
    assert one.step_s is not None
    assert one.step_s >= 0.003
    metrics = {metric.name: metric.value for metric in one.metrics}
    assert metrics["accept_len_counters"] == pytest.approx(3.0, abs=0.15)
    assert metrics["steady"] == 1.0
    assert dict(one.effective)["max_running_requests"] == 4
    assert one.log_digest is not None


def test_the_cell_that_ranks_is_measured_when_the_budget_is_short(launch_it: Callable[..., LaunchReport]) -> None:
    """Warm-ups alone can spend the budget; the last cell is what trials are ranked by."""
    plan = BenchPlan(cells=matrix([1, 2, 4], [64], 48), budget_s=0.01, max_repeats=1, prompts_per_client=3)
    measure = bench_measure(plan, Identity(hardware="standin", model="m"))
    report = launch_it(Truth(step_s=0.003, seed=1), "--decode-log-interval", "4", measures=((Stage.BENCH, measure),))
    assert [one.concurrency for one in report.observations] == [4]
    assert sum("the budget is spent" in note for note in report.notes) == 2


def test_old_client_name(tmp_path: Path) -> None:
    """0.5.12.post1 has the client under its old name only."""
    from planner.launch.host import LocalHost
    from planner.launch.preflight import look
    from tests.launch.standin_site import make_site

    site = make_site(tmp_path / "old", version="0.5.12.post1", new_client=False)
    modules = look(LocalHost(), sys.executable, env={"PYTHONPATH": str(site)}, parse=False)["modules"]
    assert modules == {"sglang.benchmark.serving": False, "sglang.bench_serving": True}


def test_server_dies_under_load(launch_it: Callable[..., LaunchReport]) -> None:
    measure = bench_measure(
        BenchPlan(cells=matrix([4], [64], 48), budget_s=20.0, max_repeats=15, prompts_per_client=20), Identity()
    )
    report = launch_it(Truth(faults=("crash_load",), seed=1), measures=((Stage.BENCH, measure),))
    assert (report.cause, report.stage) == ("cuda-illegal-address-spec", Stage.BENCH), report.detail


def test_client_that_fails(launch_it: Callable[..., LaunchReport]) -> None:
    plan = BenchPlan(cells=matrix([1], [8], 8), dataset=Dataset("no-such", "/none"), budget_s=5.0, run_timeout_s=0.01)
    report = launch_it(measures=((Stage.BENCH, bench_measure(plan, Identity())),))
    assert (report.cause, report.stage) == ("bench-failed", Stage.BENCH)


def test_soak(launch_it: Callable[..., LaunchReport]) -> None:
    plan = BenchPlan(cells=matrix([4], [32], 16), prompts_per_client=2)
    report = launch_it(measures=((Stage.SOAK, soak_measure(plan, 0.03)),))
    assert report.ok, f"{report.cause}: {report.detail}"
    assert any(note.startswith("soak: ") for note in report.notes)
    report = launch_it(Truth(faults=("crash_load",), seed=1), measures=((Stage.SOAK, soak_measure(plan, 2.0)),))
    assert (report.cause, report.stage) == ("cuda-illegal-address-spec", Stage.SOAK), report.detail


def test_power_and_driver(
    launch_it: Callable[..., LaunchReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_command(tmp_path / "bin", "nvidia-smi")
    monkeypatch.setenv("PATH", on_path(tmp_path / "bin"))
    plan = BenchPlan(cells=matrix([1], [32], 64), budget_s=3.0, max_repeats=3)
    (one,) = launch_it(measures=((Stage.BENCH, bench_measure(plan, Identity())),)).observations
    assert one.power_w == pytest.approx(420.0)
    assert one.driver == "NVIDIA H200 x2, driver 580.1"


def test_devices_of_other_servers_are_not_read(
    launch_it: Callable[..., LaunchReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_command(tmp_path / "bin", "nvidia-smi")
    monkeypatch.setenv("PATH", on_path(tmp_path / "bin"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    plan = BenchPlan(cells=matrix([1], [32], 64), budget_s=3.0, max_repeats=3)
    (one,) = launch_it(measures=((Stage.BENCH, bench_measure(plan, Identity())),)).observations
    assert one.power_w == pytest.approx(440.0)


def test_client_argv_is_a_list_of_words() -> None:
    argv = client_argv(
        "py", "m", "http://h", Cell(2, 8, 4), n_prompts=6, seed=3, model="a b", tokenizer="t", dataset=Dataset()
    )
    assert argv[argv.index("--model") + 1] == "a b"
    assert argv[argv.index("--output-file") + 1] == "/dev/stdout"


def test_result_line_among_other_output() -> None:
    text = 'half a line{"tag": null, "completed": 3, "request_rate": Infinity}\nmore\n'
    assert read_result(text)["completed"] == 3
    for cut in ("", 'x {"tag": null, "comp', "{}"):
        with pytest.raises(ValueError):
            read_result(cut)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=40))
def test_interval_holds_the_median(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval.low <= interval.value <= interval.high
    assert min(values) <= interval.low
    assert interval.high <= max(values)


def test_interval_covers_as_often_as_it_says() -> None:
    """10,000 draws of 9 values of a skewed distribution whose median is known."""
    rng = random.Random(5)
    intervals = [median_interval([rng.expovariate(1.0) for _ in range(9)]) for _ in range(10_000)]
    hits = sum(one.low <= 0.6931 <= one.high for one in intervals) / len(intervals)
    assert intervals[0].coverage == pytest.approx(0.9609, abs=1e-3)
    assert hits == pytest.approx(intervals[0].coverage, abs=0.01)


def test_few_repeats_are_never_tight() -> None:
    assert not median_interval([100.0, 100.0, 100.0, 100.0]).tight(0.5)
    assert median_interval([100.0] * 5).tight(0.01)


def point(running: int, speed: float, accept: float | None) -> DecodePoint:
    return DecodePoint(line=1, running_req=running, accept_len=accept, gen_tok_per_s=speed)


def test_tail_does_not_count() -> None:
    """Protects: accept length read at the tail of a run, which misled by hand."""
    points = [point(64, 1.0, 9.0), *[point(64, 6400.0, 4.0)] * 4, *[point(3, 300.0, 1.2)] * 50]
    full = full_batch(points, 64)
    assert (full.accept_len, full.tok_per_s, full.n_lines) == (4.0, 6400.0, 4)
    assert full.step_s == pytest.approx(64 * 4.0 / 6400.0)
    assert full_batch(points[:3], 64).tok_per_s is None
    assert full_batch([point(2, 10.0, None)] * 5, 2).step_s == pytest.approx(0.2)


def test_accept_length_from_counters() -> None:
    def scrape(tokens: int, steps: int, requests: int) -> str:
        return (
            f'sglang:generation_tokens_total{{model_name="m"}} {tokens}.0\n'
            f'sglang:spec_verify_calls_total{{model_name="m"}} {steps}.0\n'
            f'sglang:num_requests_total{{model_name="m"}} {requests}\n'
        )

    before, after = parse_metrics(scrape(1000, 900, 10)), parse_metrics(scrape(1000 + 410, 900 + 100, 20))
    assert accept_len_between(before, after) == pytest.approx(4.0)
    assert accept_len_between(before, before) is None
    assert accept_len_between(after, before) is None
    assert accept_len_between(parse_metrics(""), after) is None


def test_ranks_are_not_added_up() -> None:
    text = "".join(
        f'sglang:num_running_reqs{{tp_rank="{rank}",dp_rank="{dp}"}} 5\n' for rank in range(4) for dp in range(2)
    )
    assert parse_metrics(text).total("num_running_reqs") == 10


@given(st.text(max_size=300))
def test_any_text_is_metrics_or_nothing(text: str) -> None:
    parse_metrics(text)


def test_nothing_of_the_client_is_left(launch_it: Callable[..., LaunchReport], site: Path) -> None:
    """The server dies while the client runs: the client goes too."""
    measure = bench_measure(BenchPlan(cells=matrix([4], [64], 48), prompts_per_client=500, budget_s=30.0), Identity())
    report = launch_it(Truth(faults=("crash_load",), seed=1), measures=((Stage.BENCH, measure),), limits=FAST)
    assert not report.ok
    assert not standins_of(site)
