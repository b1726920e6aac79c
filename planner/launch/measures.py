"""What a launch may do with a server that is right: benchmark it, soak it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from planner.domain import Observation, Outcome
from planner.errors import InputError
from planner.launch.bench import Bencher, BenchPlan, CellResult
from planner.launch.bench_client import Cell
from planner.launch.canary import MIN_ACCEPT_LEN
from planner.launch.devices import driver_of
from planner.launch.metrics import accept_len_between
from planner.launch.records import Identity, new_observation
from planner.launch.verdict import Cause, JudgedError, Stage

if TYPE_CHECKING:
    from planner.launch.session import Measure, Session

__all__ = ["bench_measure", "soak_measure"]

MIN_SOAK_SPEED_FRAC = 0.7
"""A round of a soak that is slower than this share of the first ones is noted."""


def bench_measure(plan: BenchPlan, identity: Identity) -> Measure:
    """A benchmark of the matrix; one observation a cell."""

    async def measure(session: Session) -> tuple[Observation, ...]:
        bencher = _bencher(session, plan)
        gate = session.gate
        assert gate is not None
        late = JudgedError(Cause.BENCH_FAILED, "the benchmark did not end in time", stage=Stage.BENCH)
        results = await gate.guard(bencher.run(), timeout_s=plan.budget_s + 2 * plan.run_timeout_s, late=late)
        session.notes += bencher.notes
        driver = driver_of(session.order.host)
        for note in bencher.notes:
            session.ui.say(note)
        for result in results:
            session.ui.say(_shown(result))
        base = {"target": session.order.target, "engine_version": session.engine.version if session.engine else None}
        return tuple(
            result.fill(
                new_observation(
                    identity,
                    outcome=Outcome(cause=Cause.OK),
                    candidate=session.order.target.expected if not session.mismatches else None,
                    info=gate.info,
                    driver=driver,
                    **base,  # type: ignore[arg-type]
                )
            ).replace(temperature=plan.dataset.temperature)
            for result in results
        )

    return measure


def _shown(result: CellResult) -> str:
    speed = result.tok_per_s
    accept = f", accept length {result.accept_len:.2f}" if result.accept_len is not None else ""
    step = f", step {result.full.step_s * 1e3:.2f} ms" if result.full.step_s is not None else ""
    kind = "full batch" if result.steady else "client, ramp and tail included"
    return (
        f"  {result.cell}: {speed.value:.0f} tok/s [{speed.low:.0f}, {speed.high:.0f}] ({kind}; "
        f"{speed.n} repeats, ended by {result.stopped_by}){accept}{step}"
    )


def _bencher(session: Session, plan: BenchPlan) -> Bencher:
    gate, engine = session.gate, session.engine
    assert gate is not None
    assert engine is not None
    if engine.client is None:
        raise JudgedError(Cause.BENCH_FAILED, f"SGLang in {engine.python} has no benchmark client", stage=Stage.BENCH)
    if not plan.cells:
        raise InputError("an empty benchmark matrix")
    env = dict(session.order.target.env)
    return Bencher(
        host=session.order.host,
        python=engine.python,
        module=engine.client,
        base_url=session.order.target.base_url,
        client=gate.client,
        plan=plan,
        ui=session.ui,
        info=gate.info or {},
        log=session.log,
        env=env,
        gpus=env.get("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES")),
    )


def soak_measure(plan: BenchPlan, minutes: float) -> Measure:
    """Keeps load on for ``minutes`` and watches: crash, failed requests, accept length down to 1, loss of speed; at the
    end the canary again. Faults that come after hours are on record."""

    async def measure(session: Session) -> tuple[Observation, ...]:
        gate = session.gate
        assert gate is not None
        bencher = _bencher(session, plan)
        cell = plan.cells[-1]
        end = time.monotonic() + minutes * 60.0
        late = JudgedError(Cause.BENCH_FAILED, "a round of the soak did not end in time", stage=Stage.SOAK)
        speeds: list[float] = []
        before = await bencher.scrape()
        while time.monotonic() < end:
            left_min = (end - time.monotonic()) / 60.0
            session.ui.step(f"soak {cell}, {left_min:.0f} min left")
            work = bencher.once(cell, n_prompts=_round_size(cell, plan), seed=plan.seed + 100_000 + len(speeds))
            run = await gate.guard(work, timeout_s=plan.run_timeout_s + 30.0, late=late)
            speeds.append(run.tok_per_s)
            after = await bencher.scrape()
            accept = accept_len_between(before, after) if before and after else None
            if accept is not None and accept <= MIN_ACCEPT_LEN:
                raise JudgedError("accept-len-1", f"accept length fell to {accept:.2f} after {len(speeds)} rounds")
            before = after
        slowest, first = min(speeds), max(speeds[:3])
        if slowest < MIN_SOAK_SPEED_FRAC * first:
            session.notes.append(f"soak: the slowest round had {slowest:.0f} tok/s, the first ones {first:.0f}")
        session.notes.append(f"soak: {len(speeds)} rounds of {_round_size(cell, plan)} requests in {minutes:g} min")
        late = JudgedError(Cause.SLOW_ANSWER, "the canary after the soak did not end in time", stage=Stage.SOAK)
        await gate.guard(gate.canary(), timeout_s=gate.limits.canary_timeout_s, late=late)
        return ()

    return measure


def _round_size(cell: Cell, plan: BenchPlan) -> int:
    return max(8, cell.concurrency * plan.prompts_per_client)
