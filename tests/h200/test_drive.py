"""The campaign's driver against a scripted server: what is measured and written, what survives a cut or a crash."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "benchmarks" / "h200"
STAND_IN = Path(__file__).with_name("stand_in.py")
sys.path.insert(0, str(BENCH))

from design import JOBS, Cell, Job  # noqa: E402
from drive import Campaign  # noqa: E402
from server import prompt  # noqa: E402
from shapes import write_shapes  # noqa: E402


def job(name: str, cells: tuple[Cell, ...], **more: Any) -> Job:
    draft = {"draft": "draft-tiny", "kind": "tree", "q_len": 9, "topk": 8, "steps": 4, "accept_len": 4.0}
    return Job(**({"name": name, "model": "dense-8b", "cells": cells, "estimate_s": 1.0} | draft | more))


def campaign(tmp_path: Path, *, seconds: float = 60.0) -> Campaign:
    write_shapes(tmp_path / "models")
    return Campaign(
        str(tmp_path / "models"),
        tmp_path / "out",
        tmp_path / "state",
        seconds=seconds,
        launcher=(sys.executable, str(STAND_IN)),
        ready_s=20.0,
    )


def records(tmp_path: Path, kind: str) -> list[dict[str, Any]]:
    lines = (tmp_path / "out" / "raw.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["type"] == kind]


def test_step_time_comes_from_full_batch_lines_without_the_first(tmp_path: Path) -> None:
    campaign(tmp_path).run([job("one", (Cell(4, 64, repeats=2), Cell(1, 64)))])
    cells = records(tmp_path, "cell")
    assert [(cell["concurrency"], cell["repeat"]) for cell in cells] == [(4, 0), (4, 1), (1, 0)]
    assert all(abs(cell["step_s"] - 0.010) < 1e-6 and cell["accept_len"] == 4.0 for cell in cells)
    assert cells[0]["lines"][0][2] == 1.0, "the line that spans the prefill is kept as raw data"
    assert records(tmp_path, "server")[0]["info"]["max_total_num_tokens"] == 100000


def test_a_second_command_goes_on_where_the_first_stopped(tmp_path: Path) -> None:
    jobs = [job("one", (Cell(1, 8),)), job("two", (Cell(2, 8),))]
    campaign(tmp_path).run(jobs[:1])
    campaign(tmp_path).run(jobs)
    assert [cell["job"] for cell in records(tmp_path, "cell")] == ["one", "two"]


def test_a_crash_is_a_record_and_the_next_job_runs(tmp_path: Path) -> None:
    jobs = [job("dies", (Cell(1, 8), Cell(3, 8)), env=(("STAND_IN_CRASH_AT", "3"),)), job("lives", (Cell(2, 8),))]
    campaign(tmp_path).run(jobs)
    assert [cell["job"] for cell in records(tmp_path, "cell")] == ["dies", "lives"]
    (failure,) = records(tmp_path, "failure")
    assert failure["job"] == "dies"
    assert any("Scheduler hit an exception" in line for line in failure["log"])


def test_a_cell_that_cannot_fit_records_how_many_ran(tmp_path: Path) -> None:
    campaign(tmp_path).run([job("crowd", (Cell(8, 50, fits=False),), env=(("STAND_IN_POOL", "200"),))])
    (cell,) = records(tmp_path, "cell")
    assert cell["running_max"] == 4
    assert cell["queued_max"] == 4


def test_a_spent_deadline_starts_nothing(tmp_path: Path) -> None:
    campaign(tmp_path, seconds=0.0).run([job("one", (Cell(1, 8),))])
    assert records(tmp_path, "cell") == []
    assert records(tmp_path, "server") == []


@pytest.mark.parametrize("item", JOBS, ids=lambda item: item.name)
def test_design_is_consistent(item: Job) -> None:
    sizes = {cell.concurrency for cell in item.cells if cell.fits}
    assert max(sizes) <= item.max_running
    if item.graph:
        assert sizes <= set(item.graph_bs), "a concurrency that is not captured would be padded"
    assert (item.kind == "off") == (item.draft is None) == (item.q_len == 1)
    assert item.accept_len <= min(item.q_len, item.steps + 1)
    assert item.q_len - 1 <= item.topk + max(item.steps - 1, 0) * item.topk**2
    if item.kind == "chain":
        assert item.topk == 1
        assert item.steps == item.q_len - 1
    assert max(cell.context_tok for cell in item.cells) + 400 <= 9216


def test_names_are_unique() -> None:
    assert len({item.name for item in JOBS}) == len(JOBS)


def test_short_prompts_are_beginnings_of_long_ones() -> None:
    assert prompt(7, 512, 20480) == prompt(7, 8192, 20480)[:512]
    assert prompt(7, 64, 20480) != prompt(8, 64, 20480)
    assert min(prompt(1, 512, 20480)) >= 3
    assert max(prompt(1, 512, 20480)) < 20480
