"""Hypothesis strategies and helpers for searches."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from planner.domain import Candidate, Limit
from planner.search.models import load_models
from planner.search.planning import request_for, target_of
from planner.search.request import Question, WorkloadInput, load_subject
from planner.search.solve import Solved, solve
from planner.search.space import Pins

HARDWARE = ("b300", "rtx_pro_6000", "h200")


@st.composite
def workloads(draw: st.DrawFn) -> WorkloadInput:
    """Traffic that any of the machines may be asked for."""
    return WorkloadInput(
        target_c=draw(st.sampled_from((1, 3, 8, 32, 64, 100, 128, 192, 256, 512))),
        context=draw(st.sampled_from((128, 1024, 8192, 32768))),
        output_len=draw(st.sampled_from((64, 1024, 4096))),
        temperature=draw(st.sampled_from((0.0, 0.7, 1.0))),
        domain=draw(st.sampled_from(("unknown", "code", "chat", "math"))),
        needs=draw(st.sampled_from(((), ("grammar",), ("grammar", "logprobs")))),
        allow_queue=draw(st.booleans()),
    )


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    """A limit that someone may have learned."""
    quantity = draw(st.sampled_from(("verify_rows_per_rank", "q_len", "max_running_requests", "ep_size", "tp_size")))
    good = draw(st.sampled_from((1.0, 4.0, 8.0, 64.0, 500.0, 1152.0)))
    return Limit(
        id="DRAWN",
        title="drawn",
        shape="at_most",
        quantity=quantity,
        known_good=good,
        known_bad=draw(st.sampled_from((None, good * 2))),
        status="established",
        consequence="crash",
        seen_on="a test",
        evidence=({"ref": "a run", "outcome": "crash"},),
    )


def search(
    hw: str = "b300", workload: WorkloadInput | None = None, *, extra: tuple[Limit, ...] = (), **question: Any
) -> Solved:
    """A finished search."""
    pins = Pins.read(question.pop("pins", {}))
    asked = Question(hw=hw, workload=workload or WorkloadInput(target_c=64), pins=pins, **question)
    subject = load_subject(asked)
    models = load_models(subject.hardware, subject.model, subject.drafter, subject.workload)
    request = request_for(asked, subject, models, target_of(subject))
    if extra:
        from dataclasses import replace

        request = replace(request, limits=(*request.limits, *extra))
    return solve(request)


def every_cell(solved: Solved) -> list[Candidate]:
    """All candidates of a (small) space as values, in the order of the arrays."""
    table = solved.table
    return [
        table.candidate(row, size, fraction, dialect="upstream", engine_version=None)
        for row in range(len(table))
        for size in range(len(table.sizes))
        for fraction in range(len(table.mem_fraction_static))
    ]
