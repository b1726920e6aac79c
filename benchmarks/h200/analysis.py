"""The campaign's ledger against the planner's models: what was predicted, how far off it was, what would be chosen.

Everything here reads the packaged ledger and needs no GPU. ``report.py`` writes the page, the notebook draws it.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from shapes import SHAPES  # noqa: E402

from planner.data.files import read_text  # noqa: E402
from planner.data.hf_config import drafter_from_hf_config, model_from_hf_config  # noqa: E402
from planner.data.load import load_hardware  # noqa: E402
from planner.domain import DrafterProfile, Estimate, ModelProfile, Observation  # noqa: E402
from planner.estimate.acceptance import acceptance_from_rounds, fit_acceptance  # noqa: E402
from planner.estimate.memory import memory_parts  # noqa: E402
from planner.estimate.step_cost import StepCostFit, fit_step_cost  # noqa: E402
from planner.estimate.step_cost.default import base_posterior, uncalibrated_model  # noqa: E402
from planner.estimate.step_cost.features import build_features  # noqa: E402
from planner.estimate.step_cost.rows import read_rows  # noqa: E402

__all__ = [
    "MODELS",
    "Cell",
    "Choice",
    "Score",
    "accept_curve",
    "acceptance_points",
    "blind_ladder",
    "choices",
    "context_slopes",
    "crossovers",
    "exact_mode",
    "few_point_errors",
    "fit_cells",
    "informative",
    "known_cells",
    "kv_capacity",
    "ladder",
    "load_cells",
    "model_profile",
    "observations",
    "one_point",
    "other_draft",
    "other_draft_score",
    "quarter",
    "score",
    "second_starts",
]

MODELS = {"qwen3-8b": "dense-8b", "mla-moe-rank": "mla-moe-rank"}
MIN_TREES = 3
SECOND_RUN = "2026-11-30T12"
"""The second run began after this hour; the model was fixed before its times were seen (raw/blind_second.json)."""
OTHER_DRAFT = "draft-0.6b"
DRAFT_STEPS = 4
"""Draft steps of the trees; one job has 8."""


@lru_cache(maxsize=4)
def observations(name: str = "h200") -> tuple[Observation, ...]:
    """The packaged ledger ``h200`` or ``h200_acceptance``."""
    lines = read_text(f"observations/{name}.jsonl").splitlines()
    return tuple(Observation.model_validate_json(line) for line in lines)


def model_profile(model_id: str) -> ModelProfile:
    """A model of the campaign, from the configuration that the server ran."""
    return model_from_hf_config(SHAPES[MODELS[model_id]], folder=Path(model_id))


def drafter_profile(name: str) -> DrafterProfile:
    """A drafter of the campaign, from the configuration that the server ran."""
    return drafter_from_hf_config(SHAPES[name], folder=Path(name))


def _drafter_of(cells: Sequence[Cell]) -> DrafterProfile | None:
    """The drafter of some cells, None where none speculates.

    Raises:
        ValueError: they have more than one.
    """
    named = {cell.draft for cell in cells} - {"none"}
    if len(named) > 1:
        raise ValueError(f"more than one drafter: {sorted(named)}")
    return drafter_profile(named.pop()) if named else None


def _argument(item: Observation, name: str) -> int:
    """A whole number of an observation's arguments, 0 where it was not given."""
    return int(item.argv[item.argv.index(name) + 1]) if name in item.argv else 0


def metric(item: Observation, name: str) -> float | None:
    """One of an observation's further numbers."""
    return next((m.value for m in item.metrics if m.name == name), None)


@dataclass(frozen=True)
class Cell:
    """One measured step, as a row of a fit and with its place in the design."""

    id: str
    model: str
    kind: str
    q_len: int
    graph: bool
    concurrency: int
    prompt_tok: int
    step_s: float
    accept_len: float
    draft: str
    draft_steps: int
    later: bool
    """Measured in the second run, after the model had been fixed."""
    n_repeats: int
    spread_frac: float
    line_cv: float
    disturbed: bool
    row: Mapping[str, object]

    @property
    def place(self) -> tuple[object, ...]:
        """What one configuration is."""
        return (self.kind, self.q_len, self.draft, self.draft_steps, self.graph, self.concurrency, self.prompt_tok)

    @property
    def usual_depth(self) -> bool:
        """Whether it drafts as deep as the others of its form: one job has more steps than that."""
        return self.draft_steps <= DRAFT_STEPS

    @property
    def mode(self) -> str:
        """``off``, ``chain``, ``tree``; eager ones say so."""
        return self.kind if self.graph else f"{self.kind}, eager"


def load_cells(model_id: str, *, disturbed: bool = False) -> list[Cell]:
    """Cells of one model with the small draft model, each configuration once: the first start that measured it.

    Eager steps wait for the host. While the next server imported on the same host they were up to 1.6 times longer, and
    their decode lines scatter by 2 to 19 %: such cells are in the ledger and left out here unless ``disturbed``.
    """
    seen: set[tuple[object, ...]] = set()
    kept = []
    for cell in sorted(_all_cells(model_id), key=lambda cell: cell.later):
        if cell.draft == OTHER_DRAFT or cell.place in seen or (cell.disturbed and not disturbed):
            continue
        seen.add(cell.place)
        kept.append(cell)
    return sorted(kept, key=lambda cell: cell.id)


def second_starts(model_id: str) -> list[tuple[Cell, Cell]]:
    """(first, second) measurement of each cell that two starts of one configuration have."""
    first = {cell.place: cell for cell in load_cells(model_id)}
    return [
        (first[cell.place], cell)
        for cell in _all_cells(model_id)
        if cell.draft != OTHER_DRAFT and not cell.disturbed and first[cell.place].id != cell.id
    ]


def other_draft(model_id: str = "qwen3-8b") -> list[Cell]:
    """Cells with the draft model of 0.6 billion parameters."""
    return [cell for cell in _all_cells(model_id) if cell.draft == OTHER_DRAFT]


def _all_cells(model_id: str) -> list[Cell]:
    cells = []
    for item in observations():
        if item.model != model_id or item.step_s is None or item.candidate is None or item.concurrency is None:
            continue
        candidate, accept = item.candidate, item.accept_len or 1.0
        row: dict[str, object] = {
            "id": item.id,
            "engine_version": f"sglang {item.engine_version}",
            "attention_backend": candidate.attention_backend,
            "q_len": candidate.q_len,
            "kind": candidate.speculation.value,
            "draft": item.drafter or "none",
            "topk": max(candidate.topk, 1),
            "draft_steps": _argument(item, "--speculative-num-steps"),
            "tp_size": candidate.tp_size,
            "concurrency": item.concurrency,
            "context_tok": item.context_tok,
            "accept_len": accept,
            "cuda_graph": candidate.cuda_graph,
            "step_s": item.step_s,
        }
        cell = Cell(
            id=item.id,
            model=model_id,
            kind=candidate.speculation.value,
            q_len=candidate.q_len,
            graph=candidate.cuda_graph,
            concurrency=item.concurrency,
            prompt_tok=int(metric(item, "prompt_tok") or 0),
            step_s=item.step_s,
            accept_len=accept,
            draft=str(row["draft"]),
            draft_steps=_argument(item, "--speculative-num-steps"),
            later=str(item.recorded_at) > SECOND_RUN,
            n_repeats=item.n_repeats,
            spread_frac=item.spread_frac or 0.0,
            line_cv=metric(item, "line_step_cv") or 0.0,
            disturbed=not candidate.cuda_graph and bool(metric(item, "neighbour_imports")),
            row=row,
        )
        cells.append(cell)
    return cells


def quarter(cells: Sequence[Cell]) -> list[int]:
    """Positions of a quarter of the cells by design: the farthest from the middle first (a corner), then always the one
    farthest from those taken. Measured times play no part."""
    place = np.array(
        [
            [
                np.log2(c.concurrency) / 8,
                np.log2(c.q_len) / 5,
                np.log2(c.prompt_tok / 512) / 4,
                2.0 * (c.kind == "off"),
                0.5 * (c.kind == "chain"),
                1.0 * (not c.graph),
            ]
            for c in cells
        ]
    )
    taken = [int(np.argmax(((place - place.mean(axis=0)) ** 2).sum(axis=1)))]
    while len(taken) < len(cells) // 4:
        gap = ((place[:, None] - place[taken][None]) ** 2).sum(axis=2).min(axis=1)
        taken.append(int(np.argmax(gap)))
    return taken


def informative(cells: Sequence[Cell], n: int, *, noise_frac: float = 0.05) -> list[int]:
    """Positions of the ``n`` cells that tell the model most: each lowers the prior's variance over all cells as far as
    one can. Measured times play no part."""
    hardware, model, start = load_hardware("h200"), model_profile(cells[0].model), base_posterior("sglang")
    drafter = _drafter_of(cells)
    questions = [{k: v for k, v in cell.row.items() if k != "step_s"} for cell in cells]
    relative = np.zeros((len(cells), start.mean.size))
    for group in read_rows(questions, hardware=hardware, model=model, drafter=drafter):
        draft = drafter if group.drafted else None
        own = uncalibrated_model(hardware, group.model, draft, framework="sglang", posterior=start)
        columns = build_features(own.costs, group.batch).effective(start.mean)
        relative[list(group.index)] = columns / own.predict_columns(group.batch).value_s[:, None]
    covariance, taken = start.covariance.copy(), []
    for _ in range(n):
        shared = relative @ covariance @ relative.T
        gain = (shared**2).sum(axis=0) / (np.diag(shared) + noise_frac**2)
        gain[taken] = -1.0
        best = int(np.argmax(gain))
        taken.append(best)
        seen = covariance @ relative[best]
        covariance = covariance - np.outer(seen, seen) / (relative[best] @ seen + noise_frac**2)
    return taken


def fit_cells(model_id: str, cells: Sequence[Cell], known: Sequence[int]) -> StepCostFit:
    """The planner's fit on the cells at ``known``. Cells with a drafter must all have the same one."""
    rows, model = [cells[i].row for i in known], model_profile(model_id)
    return fit_step_cost(rows, hw="h200", model=model, drafter=_drafter_of(cells))


def predict(fit: StepCostFit, cells: Sequence[Cell]) -> list[Estimate]:
    """Predicted seconds of each cell."""
    return fit.predict([cell.row for cell in cells])


@dataclass(frozen=True)
class Score:
    """Errors of a set of predictions."""

    n: int
    mape: float
    p90: float
    bias: float
    coverage: float
    tok_mape: float
    """Of tokens per second at the known accept length."""


def score(fit: StepCostFit, cells: Sequence[Cell]) -> Score:
    """How far the predictions of ``cells`` are off."""
    estimates = predict(fit, cells)
    ratio = np.array([e.value / c.step_s for e, c in zip(estimates, cells, strict=True)])
    inside = [e.low <= c.step_s <= e.high for e, c in zip(estimates, cells, strict=True)]
    error = np.abs(ratio - 1)
    return Score(
        n=len(cells),
        mape=float(error.mean()),
        p90=float(np.quantile(error, 0.9)),
        bias=float((ratio - 1).mean()),
        coverage=float(np.mean(inside)),
        tok_mape=float(np.abs(1 / ratio - 1).mean()),
    )


def grouped(fit: StepCostFit, cells: Sequence[Cell], key: Callable[[Cell], Any]) -> list[tuple[Any, Score]]:
    """Scores by q_len, concurrency, context or mode."""
    return [(value, score(fit, [c for c in cells if key(c) == value])) for value in sorted({key(c) for c in cells})]


def accept_curve() -> dict[tuple[str, int], float]:
    """An accept length for every option, so that options can be compared: the planner's own curve through 4.0 at
    budget 8 (EAGLE trees, topk 8, 4 steps); the chain of 4 from the same curve."""
    fit = fit_acceptance([(8, 4.0)], block_size=5, topk=8, tree_shape="eagle")
    curve = {("off", 1): 1.0, ("tree", 9): 4.0}
    for budget in (2, 4, 12, 16, 32):
        curve["tree", budget + 1] = float(fit.predict(budget).value)  # type: ignore[union-attr]
    for length in (2, 4):
        curve["chain", length + 1] = float(fit.predict_chain(length).value)  # type: ignore[union-attr]
    return curve


@dataclass(frozen=True)
class Choice:
    """What the planner would choose at one place, and what was best."""

    prompt_tok: int
    concurrency: int
    chosen: tuple[str, int]
    best: tuple[str, int]
    regret_frac: float
    options: int


def choices(fit: StepCostFit, cells: Sequence[Cell], curve: Mapping[tuple[str, int], float]) -> list[Choice]:
    """For each context and concurrency with at least three measured options: chosen by predicted tokens per second,
    judged by measured ones. Both use the accept lengths of ``curve``."""
    graph = [c for c in cells if c.graph and (c.kind, c.q_len) in curve and c.usual_depth]
    out = []
    for place in sorted({(c.prompt_tok, c.concurrency) for c in graph}):
        here = [c for c in graph if (c.prompt_tok, c.concurrency) == place]
        if len(here) < MIN_TREES or not any(c.kind == "off" for c in here):
            continue
        tau = np.array([curve[c.kind, c.q_len] for c in here])
        measured = tau / np.array([c.step_s for c in here])
        predicted = tau / np.array([e.value for e in predict(fit, here)])
        pick, best = int(np.argmax(predicted)), int(np.argmax(measured))
        regret = 1 - measured[pick] / measured[best]
        out.append(
            Choice(
                place[0],
                place[1],
                (here[pick].kind, here[pick].q_len),
                (here[best].kind, here[best].q_len),
                float(regret),
                len(here),
            )
        )
    return out


def crossovers(
    fit: StepCostFit, cells: Sequence[Cell], *, accept_len: float = 4.0
) -> list[tuple[int, list[int], int, int]]:
    """For each context: the concurrencies measured, and the first at which speculation off beats the tree of 9 nodes
    (measured, predicted; 0: never)."""
    out = []
    for prompt_tok in sorted({c.prompt_tok for c in cells}):
        off = {c.concurrency: c for c in cells if c.graph and c.kind == "off" and c.prompt_tok == prompt_tok}
        tree = {
            c.concurrency: c
            for c in cells
            if c.graph and (c.kind, c.q_len, c.draft_steps) == ("tree", 9, DRAFT_STEPS) and c.prompt_tok == prompt_tok
        }
        sizes = sorted(off.keys() & tree.keys())
        if not sizes:
            continue
        first = []
        for step in (_measured, lambda group: [e.value for e in predict(fit, group)]):
            plain, drafted = step([off[c] for c in sizes]), step([tree[c] for c in sizes])
            wins = [c for c, a, b in zip(sizes, plain, drafted, strict=True) if 1 / a > accept_len / b]
            first.append(wins[0] if wins else 0)
        out.append((prompt_tok, sizes, first[0], first[1]))
    return out


def _measured(cells: Sequence[Cell]) -> list[float]:
    return [cell.step_s for cell in cells]


def kv_capacity() -> list[tuple[str, float, float]]:
    """(server, measured, predicted) tokens of the KV pool, one row a kind of server."""
    hardware, rows, seen = load_hardware("h200"), [], set()
    for item in observations():
        measured = metric(item, "kv_capacity_tok")
        candidate = item.candidate
        if measured is None or candidate is None:
            continue
        draft = drafter_profile(item.drafter) if item.drafter else None
        _, predicted = memory_parts(
            hardware,
            model_profile(item.model),
            draft,
            tp_size=1,
            attention_dp_size=1,
            kv_dtype="bf16",
            mem_fraction_static=candidate.mem_fraction_static,
            cuda_graph_max_bs=candidate.cuda_graph_max_bs,
            q_len=candidate.q_len,
            is_tree=candidate.speculation.value == "tree",
            context_length_tok=9216,
            attention_backend="triton",
        )
        name = f"{item.model}, {candidate.speculation.value}, q_len {candidate.q_len}"
        name += f", fraction {candidate.mem_fraction_static:g}"
        name += "" if candidate.cuda_graph else ", eager"
        if name not in seen:
            seen.add(name)
            rows.append((name, measured, predicted))
    return rows


def acceptance_points(temperature: float = 0.0) -> list[dict[str, Any]]:
    """What the servers accepted: budget, topk, kind, accept length, rounds, and answers as without speculation."""
    points = []
    for item in observations("h200_acceptance"):
        if item.accept_len is None or item.temperature != temperature or item.candidate is None:
            continue
        if item.candidate.cuda_graph:  # the probe of 16380 rows
            continue
        points.append(
            {
                "kind": item.candidate.speculation.value,
                "topk": item.candidate.topk,
                "budget": item.candidate.budget,
                "accept_len": item.accept_len,
                "rounds": int(metric(item, "n_rounds") or 0),
                "same": metric(item, "same_as_off_req"),
            }
        )
    return sorted(points, key=lambda p: (p["kind"], p["topk"], p["budget"]))


def few_point_errors(n_known: int) -> tuple[list[float], list[bool]]:
    """Every subset of ``n_known`` trees of one topk known, its other trees predicted: errors, inside interval."""
    from itertools import combinations

    errors, inside = [], []
    trees = [p for p in acceptance_points() if p["kind"] == "tree"]
    for topk in sorted({p["topk"] for p in trees}):
        own = [p for p in trees if p["topk"] == topk]
        for known in combinations(own, n_known):
            rows = [{k: p[k] for k in ("budget", "accept_len", "rounds", "topk")} for p in known]
            fit = fit_acceptance(rows, block_size=8, topk=topk, tree_shape="eagle")
            for point in own:
                if point not in known:
                    estimate = fit.predict(point["budget"], topk=topk)
                    errors.append(estimate.value / point["accept_len"] - 1)  # type: ignore[union-attr]
                    inside.append(estimate.low <= point["accept_len"] <= estimate.high)  # type: ignore[union-attr]
    return errors, inside


@lru_cache(maxsize=1)
def _marginals() -> tuple[Any, Any]:
    with gzip.open(HERE / "raw" / "marginals.npz.gz", "rb") as stream, np.load(io.BytesIO(stream.read())) as archive:
        probs = archive["marginals"].astype(float)
        ranks = archive["target_rank"].astype(int)
    # Stored in half precision: sums can exceed 1 by rounding.
    return probs / np.maximum(1.0, probs.sum(axis=-1, keepdims=True)), ranks


def exact_mode() -> tuple[list[tuple[dict[str, Any], Estimate]], dict[int, float]]:
    """Exact mode from the drafter's marginals (rounds of the chain of 7) against every tree that was served, and what
    these rounds themselves accept, by chain length."""
    probs, ranks = _marginals()
    exact = acceptance_from_rounds(probs, target_rank=ranks)
    pairs = []
    for point in acceptance_points():
        if point["kind"] == "tree":
            estimate = exact.predict(point["budget"], topk=point["topk"])
        elif point["budget"] == 7:
            estimate = exact.predict_chain(7)
        else:
            continue
        pairs.append((point, estimate))
    hits = np.cumprod(ranks == 0, axis=1)
    return pairs, {n: 1 + float(hits[:, :n].sum(axis=1).mean()) for n in (7,)}


def train_facts() -> dict[str, Any]:
    """What train_tiny.py said of the training."""
    facts: dict[str, Any] = json.loads((HERE / "raw" / "train.json").read_text())
    return facts


def context_slopes(
    cells: Sequence[Cell], n_layers: int, n_heads: int, n_sms: int = 132
) -> list[tuple[str, int, int, float, float]]:
    """(kind, q_len, C, ns, ns): what one more cached token costs in one layer between 2048 and 8192 prompt tokens, as
    measured and divided by the waves of thread blocks (one a request and query head, ``n_sms`` at a time)."""
    by_place = {(c.kind, c.q_len, c.concurrency, c.prompt_tok): c for c in cells if c.graph and c.usual_depth}
    out = []
    for (kind, q_len, size, prompt), long in sorted(by_place.items()):
        short = by_place.get((kind, q_len, size, 2048))
        if prompt == 8192 and short is not None:
            slope = (long.step_s - short.step_s) / (8192 - 2048) / n_layers * 1e9
            out.append((kind, q_len, size, slope, slope / max(1.0, size * n_heads / n_sms)))
    return out


def one_point(cells: Sequence[Cell]) -> list[int]:
    """Position of the autoregressive cell with one request and the shortest context."""
    plain = [i for i, c in enumerate(cells) if c.kind == "off" and c.graph and c.concurrency == 1]
    return [min(plain, key=lambda i: cells[i].prompt_tok)]


def known_cells(cells: Sequence[Cell]) -> dict[str, list[int]]:
    """Positions known on each step of the ladder: none, one autoregressive cell, four informative ones, a quarter."""
    return {"zero": [], "one": one_point(cells), "four": informative(cells, 4), "quarter": quarter(cells)}


def ladder(model_id: str) -> dict[str, Score]:
    """Scores by what is known. What is known is not scored."""
    cells = load_cells(model_id)
    out = {}
    for name, known in known_cells(cells).items():
        rest = [c for i, c in enumerate(cells) if i not in known]
        out[name] = score(fit_cells(model_id, cells, known), rest)
    return out


def blind_ladder(model_id: str) -> dict[str, Score]:
    """The same with cells of the first run known and those of the second scored, which no model had seen."""
    cells = load_cells(model_id)
    first, second = [c for c in cells if not c.later], [c for c in cells if c.later]
    return {name: score(fit_cells(model_id, first, known), second) for name, known in known_cells(first).items()}


def other_draft_score() -> Score:
    """Cells with another draft model, predicted from its shape by the fit on a quarter of the others."""
    cells = load_cells("qwen3-8b")
    fit = fit_cells("qwen3-8b", cells, quarter(cells))
    return score(replace(fit, drafter=drafter_profile(OTHER_DRAFT)), other_draft())
