"""What the campaign runs: one job a server, each with its cells. Fractional: contexts and concurrencies alternate."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CONTEXTS", "JOBS", "Cell", "Job", "job_named"]

CONTEXTS = (512, 2048, 8192)


@dataclass(frozen=True)
class Cell:
    """One point: concurrency, prompt tokens, and how often it is measured."""

    concurrency: int
    context_tok: int
    repeats: int = 1
    fits: bool = True
    """False: the KV pool is meant to be too small; the running requests are what is measured."""


@dataclass(frozen=True)
class Job:
    """One server start and its cells."""

    name: str
    model: str
    kind: str
    """``off``, ``chain`` or ``tree``."""
    q_len: int
    cells: tuple[Cell, ...]
    draft: str | None = None
    topk: int = 0
    steps: int = 0
    tp_size: int = 1
    accept_len: float = 1.0
    graph: bool = True
    graph_bs: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    mem_fraction: float = 0.80
    estimate_s: float = 75.0
    temperature: float = 0.0
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=())

    @property
    def max_running(self) -> int:
        return max(self.graph_bs)

    def argv(self, models: str) -> list[str]:
        """Server arguments; ``models`` is the folder of the model folders."""
        argv = ["--model-path", f"{models}/{self.model}", "--load-format", "dummy", "--dtype", "bfloat16"]
        argv += ["--attention-backend", "triton", "--sampling-backend", "pytorch", "--grammar-backend", "none"]
        argv += ["--mem-fraction-static", f"{self.mem_fraction:g}", "--context-length", "9216"]
        argv += ["--max-running-requests", str(self.max_running), "--decode-log-interval", "5"]
        argv += ["--disable-prefill-cuda-graph", "--skip-server-warmup", "--random-seed", "1"]
        if self.graph:
            argv += ["--cuda-graph-bs", *(str(size) for size in self.graph_bs)]
        else:
            argv += ["--disable-cuda-graph"]
        if self.tp_size > 1:
            argv += ["--tp-size", str(self.tp_size)]
        if self.draft is not None:
            argv += ["--speculative-algorithm", "STANDALONE"]
            argv += ["--speculative-draft-model-path", f"{models}/{self.draft}"]
            argv += ["--speculative-num-steps", str(self.steps), "--speculative-eagle-topk", str(self.topk)]
            argv += ["--speculative-num-draft-tokens", str(self.q_len)]
        return [*argv, *self.args]

    def environment(self) -> dict[str, str]:
        own = dict(self.env)
        if self.draft is not None:
            own["SGLANG_SIMULATE_ACC_LEN"] = f"{self.accept_len:g}"
        return own


def _cells(short: tuple[int, ...], middle: tuple[int, ...], long: tuple[int, ...], again: int = 1) -> tuple[Cell, ...]:
    """Large batches first: smaller ones find their prompts in the prefix cache."""
    spans = ((8192, long), (2048, middle), (512, short))
    return tuple(
        Cell(c, context, again if c in (1, 16, 64) else 1)
        for context, sizes in spans
        for c in sorted(sizes, reverse=True)
    )


_FULL = _cells((1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 4, 16, 64, 128), (1, 4, 16, 32), again=3)
_LIGHT_A = _cells((1, 4, 16, 64, 128, 256), (1, 8, 64), (1, 16))
_LIGHT_B = _cells((1, 2, 8, 32, 128, 256), (1, 16, 64), (4, 16))
_EAGER = _cells((1, 4, 16, 64, 128), (1, 16, 64), (4,))
_MOE = _cells((1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 16, 64), (1, 16, 32))

_TREE = {"draft": "draft-tiny", "topk": 8, "steps": 4, "kind": "tree", "model": "dense-8b"}
_ROUTED = (("ROUTE_TOKENS", "1"),)


def _tree(q_len: int, cells: tuple[Cell, ...], **more: object) -> Job:
    name = str(more.pop("name", f"dense-tree-q{q_len}"))
    return Job(name=name, q_len=q_len, cells=cells, accept_len=min(4.0, q_len), **(_TREE | more))  # type: ignore[arg-type]


def _chain(q_len: int, cells: tuple[Cell, ...]) -> Job:
    return Job(
        name=f"dense-chain-q{q_len}",
        model="dense-8b",
        kind="chain",
        q_len=q_len,
        cells=cells,
        draft="draft-tiny",
        topk=1,
        steps=q_len - 1,
        accept_len=min(4.0, q_len),
    )


def _moe(q_len: int, **more: object) -> Job:
    common: dict[str, object] = {"model": "mla-moe-rank", "q_len": q_len, "cells": _MOE, "env": _ROUTED}
    if q_len == 1:
        common |= {"name": "moe-off", "kind": "off", "temperature": 1.0}
    else:
        common |= {"name": f"moe-tree-q{q_len}", "kind": "tree", "draft": "draft-tiny-20k", "topk": 8, "steps": 4}
        common |= {"accept_len": min(4.0, q_len)}
    return Job(**(common | {"estimate_s": 90.0, "mem_fraction": 0.75} | more))  # type: ignore[arg-type]


_OFF = {"model": "dense-8b", "kind": "off", "q_len": 1}
_PROBE_BS = (1, 64, 252)

JOBS: tuple[Job, ...] = (
    Job(name="dense-off", cells=(Cell(64, 8192), *_FULL), estimate_s=160, **_OFF),  # type: ignore[arg-type]
    _tree(9, _FULL, estimate_s=120),
    _tree(17, _FULL, estimate_s=110),
    Job(
        name="dense-off-eager",
        cells=(*_EAGER, Cell(40, 8192, fits=False)),
        graph=False,
        mem_fraction=0.30,
        estimate_s=70,
        **_OFF,  # type: ignore[arg-type]
    ),
    _tree(9, _EAGER, name="dense-tree-q9-eager", graph=False, estimate_s=65),
    _tree(5, _LIGHT_A),
    _tree(33, _LIGHT_B, mem_fraction=0.70, estimate_s=95),
    _chain(5, _LIGHT_B),
    _tree(3, _LIGHT_B),
    _tree(13, _LIGHT_A),
    _chain(9, _LIGHT_A),
    _moe(1),
    _moe(9),
    _moe(17),
    _moe(5),
    _tree(65, _cells((1, 64, 252), (), ()), name="dense-probe-q65", graph_bs=_PROBE_BS, mem_fraction=0.55),
    _moe(65, name="moe-probe-q65", cells=_cells((1, 64, 252), (), ()), graph_bs=_PROBE_BS, mem_fraction=0.70),
    _chain(3, _LIGHT_A),
    _tree(17, _EAGER, name="dense-tree-q17-eager", graph=False, estimate_s=65),
    _tree(9, _LIGHT_A, name="dense-tree-q9-again"),
    _tree(9, _LIGHT_B, name="dense-tree-q9-draft06b", draft="draft-0.6b", estimate_s=90),
    _tree(3, _LIGHT_B, name="dense-tree-q3-s2", steps=2),
    _tree(9, _LIGHT_A, name="dense-tree-q9-s8", steps=8),
    Job(name="dense-off-again", cells=_LIGHT_A, **_OFF),  # type: ignore[arg-type]
    _moe(1, name="moe-off-again"),
    _moe(33, cells=_LIGHT_A, mem_fraction=0.70),
    _moe(5, name="moe-chain-q5", kind="chain", topk=1, cells=_LIGHT_B),
    Job(name="dense-off-tp2", cells=_LIGHT_A, tp_size=2, **_OFF),  # type: ignore[arg-type]
    _tree(9, _LIGHT_A, name="dense-tree-q9-tp2", tp_size=2),
)


def job_named(name: str) -> Job:
    """The job of that name."""
    return next(job for job in JOBS if job.name == name)
