"""Models applied to every core row of the space: accept length, step time, tokens per second."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.domain import DrafterProfile, HardwareProfile, ModelProfile, Provenance, Workload
from planner.domain.table import CandidateTable
from planner.estimate.memory import KV_BYTES_PER_ELEMENT
from planner.estimate.order import quantiles
from planner.estimate.step_cost.batch import SPECULATION_KINDS, StepBatch, StepColumns, attention_backend_code

__all__ = [
    "N_SAMPLES",
    "SEED",
    "AcceptColumns",
    "AcceptanceCurve",
    "Draws",
    "Models",
    "Scores",
    "StepModel",
    "draw_tok_per_s",
    "quantile_tok_per_s",
    "score",
]

Floats = NDArray[np.float64]
Overlap = tuple[float, float]
"""Whether the overlap scheduler is on for a chain and for a tree: 1 on, 0 off, 0.5 not known."""

UNKNOWN_OVERLAP: Overlap = (0.5, 0.5)
TREE = SPECULATION_KINDS.index("tree")
N_SAMPLES = 400
SEED = 20260501
"""One seed for all draws: the same input gives the same answer, and candidates share their draws."""

_BLOCK = 2000


@record(eq=False)
class AcceptColumns:
    """Accept length of each row with its 90 % interval, shape ``(n,)`` each."""

    value: Floats
    low: Floats
    high: Floats


class AcceptanceCurve(Protocol):
    """Accept length of a drafter under one workload."""

    @property
    def note(self) -> str: ...

    def ground(self, speculation: int, budget: int, topk: int) -> Provenance: ...

    def columns(self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike) -> AcceptColumns: ...

    def sample(
        self, speculation: ArrayLike, budget: ArrayLike, topk: ArrayLike, *, n_samples: int, seed: int
    ) -> Floats: ...


class StepModel(Protocol):
    """Seconds of a step for many candidates (``planner.estimate.step_cost``)."""

    def predict_columns(self, batch: StepBatch) -> StepColumns: ...

    def sample(self, batch: StepBatch, n_samples: int, seed: int) -> Floats: ...


@record(eq=False)
class Models:
    """Everything that predicts, for one machine, model, drafter and workload."""

    hardware: HardwareProfile
    model: ModelProfile
    drafter: DrafterProfile | None
    workload: Workload
    acceptance: AcceptanceCurve
    step: StepModel


@record(eq=False)
class Draws:
    """Joint posterior draws of some rows, ``(n_samples, r)`` each."""

    accept: Floats
    step_s: Floats
    tok_per_s: Floats


@record(eq=False)
class Scores:
    """What the models say of each core row, shape ``(n,)``, when ``n_running`` requests run on the box."""

    accept: AcceptColumns
    batch: StepBatch
    step: StepColumns
    n_running: float
    tok_per_s: Floats
    tok_per_s_low: Floats
    """With accept length and step at their unfavourable ends: a bound, wider than the joint interval."""
    tpot_s: Floats


def score(
    table: CandidateTable,
    models: Models,
    *,
    n_running: float,
    graph_max_bs: ArrayLike | None = None,
    overlap: Overlap = UNKNOWN_OVERLAP,
    draft_steps: int = 0,
) -> Scores:
    """Predict every core row with ``n_running`` requests running on the box.

    tok/s = n_running x accept length / step, the step with its share of prefills of other requests.
    """
    workload = models.workload
    accept = models.acceptance.columns(table.speculation, table.budget, table.topk)
    active = np.minimum(table.replicas, max(1.0, np.floor(n_running)))
    element = np.array([KV_BYTES_PER_ELEMENT[name] for name in table.kv_dtypes])
    codes = np.array([attention_backend_code(name) for name in table.backends])
    columns: dict[str, ArrayLike] = {
        "tp_size": table.tp_size,
        "ep_size": table.ep_size,
        "attention_dp_size": table.attention_dp_size,
        "q_len": table.q_len,
        "speculation": table.speculation,
        "running": n_running / active,
        "context_tok": workload.mean_context_tok,
        "prompt_tok": workload.context_tok * (1.0 - workload.prefix_hit_frac),
        "output_tok": workload.output_tok,
        "accept_len": accept.value,
        "cuda_graph": table.cuda_graph,
        "nvls": table.enable_nccl_nvls,
        "allreduce_fusion": table.allreduce_fusion,
        "kv_bytes_per_element": element[table.kv_cache_dtype],
        "attention_backend": codes[table.attention_backend],
        "topk": np.maximum(table.topk, 1),
        "overlap": np.where(table.speculation == TREE, overlap[1], overlap[0]),
        "draft_steps": draft_steps,
    }
    if graph_max_bs is not None:
        columns["cuda_graph_max_bs"] = graph_max_bs
    batch = StepBatch.from_columns(**columns)
    step = models.step.predict_columns(batch)
    return Scores(
        accept=accept,
        batch=batch,
        step=step,
        n_running=n_running,
        tok_per_s=n_running * accept.value / step.value_s,
        tok_per_s_low=n_running * accept.low / step.high_s,
        tpot_s=step.value_s / accept.value,
    )


def draw_tok_per_s(models: Models, table: CandidateTable, scores: Scores, rows: NDArray[np.int64]) -> Draws:
    """Joint posterior draws for core rows ``(r,)``; all calls share one seed, so draws of two calls are joint."""
    accept = models.acceptance.sample(
        table.speculation[rows], table.budget[rows], table.topk[rows], n_samples=N_SAMPLES, seed=SEED
    )
    step = models.step.sample(scores.batch.take(rows), N_SAMPLES, SEED)
    return Draws(accept, step, scores.n_running * accept / step)


def quantile_tok_per_s(
    models: Models, table: CandidateTable, scores: Scores, rows: NDArray[np.int64], quantile_frac: float
) -> Floats:
    """A quantile of tok/s for some core rows ``(r,)``, drawn in blocks so that memory stays bounded."""
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    drawn = [quantiles(draw_tok_per_s(models, table, scores, block).tok_per_s, (quantile_frac,))[0] for block in blocks]
    return np.concatenate(drawn) if drawn else np.empty(0)
