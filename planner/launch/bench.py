"""Measures a server that is right: a matrix of concurrencies and lengths, repeated until the median is known."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.domain import Metric, Observation
from planner.launch.bench_client import Cell, ClientRun, Dataset, client_argv, run_client
from planner.launch.bench_stats import FullBatch, MedianInterval, full_batch, median_interval
from planner.launch.client import CallError, ServerClient
from planner.launch.devices import DeviceLog, sampled
from planner.launch.host import Host
from planner.launch.logwatch import LogWatch
from planner.launch.metrics import Scrape, accept_len_between, parse_metrics
from planner.launch.progress import Ui

__all__ = ["BenchPlan", "Bencher", "CellResult", "matrix"]

RunClient = Callable[..., Awaitable[ClientRun]]


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to measure and how well."""

    cells: tuple[Cell, ...]
    dataset: Dataset = field(default_factory=Dataset)
    budget_s: float = 900.0
    """For the whole matrix, warm-up included."""
    tight_frac: float = 0.03
    """Half width of the median's interval over the median at which repeating ends."""
    max_repeats: int = 15
    prompts_per_client: int = 4
    run_timeout_s: float = 600.0
    seed: int = 1


def matrix(concurrencies: Sequence[int], contexts: Sequence[int], output_tok: int) -> tuple[Cell, ...]:
    """Every pair, short contexts first."""
    return tuple(Cell(c, context, output_tok) for context in contexts for c in concurrencies)


@dataclass(frozen=True, slots=True)
class CellResult:
    """One measured cell."""

    cell: Cell
    tok_per_s: MedianInterval
    steady: bool
    """Whether tok_per_s is the decode lines' at full batch (else the client's, ramp and tail included)."""
    client_tok_per_s: MedianInterval
    full: FullBatch
    accept_len_counters: float | None
    ttft_s: float | None
    tpot_s: float | None
    devices: DeviceLog
    n_requests: int
    stopped_by: str
    """``tight``, ``budget`` or ``repeats``."""

    @property
    def accept_len(self) -> float | None:
        """From decode lines at full batch where there are any, else from counters."""
        return self.full.accept_len if self.full.accept_len is not None else self.accept_len_counters

    def metrics(self) -> tuple[Metric, ...]:
        """Everything that an Observation has no field for."""
        client = self.client_tok_per_s
        rows = [Metric(name="client_tok_per_s", value=client.value, unit="tok/s", low=client.low, high=client.high)]
        rows.append(Metric(name="tok_per_s_coverage", value=self.tok_per_s.coverage, unit="1"))
        rows.append(Metric(name="steady", value=float(self.steady), unit="1"))
        rows.append(Metric(name="n_full_batch_lines", value=self.full.n_lines, unit="1"))
        for name, value, unit in (
            ("accept_len_counters", self.accept_len_counters, "tok"),
            ("accept_len_full_batch", self.full.accept_len, "tok"),
            ("sm_clock_mhz", self.devices.mean("sm_clock_mhz"), "MHz"),
            ("temperature_c", self.devices.mean("temperature_c"), "C"),
            ("busy_frac", self.devices.mean("busy_frac"), "1"),
        ):
            if value is not None:
                rows.append(Metric(name=name, value=value, unit=unit))
        return tuple(rows)

    def fill(self, base: Observation) -> Observation:
        """``base`` with what was measured."""
        accept = self.accept_len
        return base.replace(
            concurrency=self.cell.concurrency,
            context_tok=self.cell.context_tok,
            output_tok=self.cell.output_tok,
            tok_per_s=self.tok_per_s.value,
            accept_len=None if accept is None else max(1.0, accept),
            step_s=self.full.step_s,
            ttft_s=self.ttft_s,
            tpot_s=self.tpot_s,
            power_w=self.devices.mean("power_w"),
            n_repeats=self.tok_per_s.n,
            spread_frac=self.tok_per_s.half_width_frac if self.tok_per_s.n > 1 else None,
            metrics=self.metrics(),
        )


@dataclass(slots=True)
class Bencher:
    """Runs a plan against one server. ``log`` gives decode lines; without it the client's figures are all there is."""

    host: Host
    python: str
    module: str
    base_url: str
    """As the client's host reaches it."""
    client: ServerClient
    plan: BenchPlan
    ui: Ui
    info: Mapping[str, Any]
    log: LogWatch | None = None
    env: Mapping[str, str] | None = None
    gpus: str | None = None
    """CUDA_VISIBLE_DEVICES of the server, where it is known: only these devices are read."""
    notes: list[str] = field(default_factory=list)
    run_client: RunClient = run_client

    async def run(self) -> list[CellResult]:
        """Measures every cell that the budget allows, the last one first: it is the one that ranks.

        Raises:
            JudgedError: the client failed.
        """
        deadline = time.monotonic() + self.plan.budget_s
        cells = self.plan.cells
        for number, cell in enumerate(cells):
            # A batch size that was not seen before compiles kernels: all of them before anything is measured.
            self.ui.step(f"warm-up {cell}", number, len(cells))
            await self.once(cell, n_prompts=cell.concurrency, seed=self.plan.seed + 7919 + number)
        results: dict[int, CellResult] = {}
        for done, number in enumerate([len(cells) - 1, *range(len(cells) - 1)]):
            now = time.monotonic()
            if now >= deadline and results:
                self.notes.append(f"not measured, the budget is spent: {cells[number]}")
                continue
            share_s = max(0.0, deadline - now) / (len(cells) - done)
            results[number] = await self._cell(cells[number], now + share_s, number)
        return [results[number] for number in sorted(results)]

    async def once(self, cell: Cell, *, n_prompts: int, seed: int) -> ClientRun:
        """One run of the client.

        Raises:
            JudgedError: it failed.
        """
        argv = client_argv(
            self.python,
            self.module,
            self.base_url,
            cell,
            n_prompts=n_prompts,
            seed=seed,
            model=str(self.info.get("model_path") or "default"),
            tokenizer=str(self.info.get("tokenizer_path") or self.info.get("model_path") or "default"),
            dataset=self.plan.dataset,
        )
        return await self.run_client(
            self.host, argv, n_prompts=n_prompts, timeout_s=self.plan.run_timeout_s, env=self.env
        )

    async def _cell(self, cell: Cell, deadline: float, number: int) -> CellResult:
        runs: list[ClientRun] = []
        windows: list[FullBatch] = []
        before = await self.scrape()
        n_prompts = max(8, cell.concurrency * self.plan.prompts_per_client)
        workers = int(self.info.get("dp_size") or 1)
        stopped_by = "repeats"
        async with sampled(self.host, visible=self.gpus) as devices:
            for repeat in range(self.plan.max_repeats):
                self.ui.step(f"benchmark {cell}, repeat {repeat + 1}", number, len(self.plan.cells))
                if self.log is not None:
                    self.log.open_window()
                seed = self.plan.seed + 1000 * number + repeat
                runs.append(await self.once(cell, n_prompts=n_prompts, seed=seed))
                # Each data-parallel worker prints its own lines: they are not the server's throughput.
                points = self.log.close_window() if self.log is not None else ()
                windows.append(full_batch(points if workers == 1 else (), cell.concurrency))
                if _throughput(runs, windows)[0].tight(self.plan.tight_frac):
                    stopped_by = "tight"
                    break
                if time.monotonic() >= deadline:
                    stopped_by = "budget"
                    break
        after = await self.scrape()
        interval, steady = _throughput(runs, windows)
        return CellResult(
            cell=cell,
            tok_per_s=interval,
            steady=steady,
            client_tok_per_s=median_interval([run.tok_per_s for run in runs]),
            full=_merge(windows),
            accept_len_counters=accept_len_between(before, after) if before and after else None,
            ttft_s=_median([run.ttft_s for run in runs]),
            tpot_s=_median([run.tpot_s for run in runs]),
            devices=devices,
            n_requests=sum(run.completed for run in runs),
            stopped_by=stopped_by,
        )

    async def scrape(self) -> Scrape | None:
        """The server's counters now; None without /metrics."""
        try:
            return parse_metrics(await self.client.get_text("/metrics", deadline_s=30.0))
        except CallError:
            text = "the server has no /metrics (--enable-metrics): accept length comes from decode lines only"
            if text not in self.notes:
                self.notes.append(text)
            return None


def _throughput(runs: Sequence[ClientRun], windows: Sequence[FullBatch]) -> tuple[MedianInterval, bool]:
    """(interval, steady): decode lines at full batch when every repeat has them, else the client's own."""
    steady = [window.tok_per_s for window in windows if window.tok_per_s is not None]
    if len(steady) == len(runs):
        return median_interval(steady), True
    return median_interval([run.tok_per_s for run in runs]), False


def _merge(windows: Sequence[FullBatch]) -> FullBatch:
    return FullBatch(
        tok_per_s=_median([window.tok_per_s for window in windows]),
        accept_len=_median([window.accept_len for window in windows]),
        step_s=_median([window.step_s for window in windows]),
        n_lines=sum(window.n_lines for window in windows),
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median_interval(known).value if known else None
