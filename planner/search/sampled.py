"""Finalists priced with their uncertainty: joint posterior draws of accept length and step time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import Estimate, Predicted, Provenance, StepPart
from planner.estimate.order import quantiles
from planner.search.cell import Cell
from planner.search.score import Draws, draw_tok_per_s
from planner.search.solve import Solved

__all__ = ["Finalists", "estimate_of", "weakest"]

Floats = NDArray[np.float64]

_STRENGTH = tuple(Provenance)


def weakest(*grounds: Provenance) -> Provenance:
    """The weakest of several grounds."""
    return max(grounds, key=_STRENGTH.index)


def estimate_of(
    value: float, draws: Floats, provenance: Provenance, *, extrapolated: bool = False, note: str | None = None
) -> Estimate:
    """A central value with the 5 and 95 % quantiles of its draws (stretched to hold the value)."""
    low, high = quantiles(draws, (0.05, 0.95))
    return Estimate(
        value=value,
        low=min(float(low), value),
        high=max(float(high), value),
        provenance=provenance,
        extrapolated=extrapolated,
        note=note,
    )


@record(eq=False)
class Finalists:
    """Draws of tok/s, step and accept length for some core rows of a search."""

    solved: Solved
    rows: tuple[int, ...]
    drawn: Draws

    @classmethod
    def of(cls, solved: Solved, rows: Sequence[int]) -> Finalists:
        """Draw for the given core rows (duplicates are drawn once)."""
        unique = tuple(dict.fromkeys(rows))
        drawn = draw_tok_per_s(solved.request.models, solved.table, solved.scores, np.array(unique, dtype=np.int64))
        return cls(solved, unique, drawn)

    def draws(self, row: int) -> Floats:
        """Draws of tok/s for one row, ``(n_samples,)``."""
        return np.asarray(self.drawn.tok_per_s[:, self.rows.index(row)])

    def p_better(self, row: int, other: int) -> float:
        """Probability that ``row`` has the higher tok/s."""
        mine, theirs = self.draws(row), self.draws(other)
        return float(np.mean(mine > theirs) + 0.5 * np.mean(mine == theirs))

    def gain(self, row: int, over: int) -> Estimate:
        """tok/s that ``row`` has more than ``over``."""
        value = float(self.solved.scores.tok_per_s[row] - self.solved.scores.tok_per_s[over])
        return estimate_of(value, self.draws(row) - self.draws(over), self._ground(row))

    def predicted(self, cell: Cell, *, off_row: int | None, ttft: Estimate | None = None) -> Predicted:
        """Everything the models say about one cell."""
        solved, row = self.solved, cell.row
        scores, memory, workload = solved.scores, solved.memory, solved.request.workload
        column = self.rows.index(row)
        n = scores.n_running
        extrapolated = bool(scores.step.extrapolated[row])
        notes = "; ".join(scores.step.notes) or None
        accept_value = float(scores.accept.value[row])
        table = solved.table
        drafted = int(table.budget[row]) > 0
        acceptance = solved.request.models.acceptance
        ground = acceptance.ground(int(table.speculation[row]), int(table.budget[row]), int(table.topk[row]))
        accept = Estimate(
            value=accept_value,
            low=min(float(scores.accept.low[row]), accept_value),
            high=max(float(scores.accept.high[row]), accept_value),
            provenance=ground,
            note=acceptance.note if drafted else "one token a step",
        )
        step_ground = weakest(*(scores.step.provenance[name] for name in _large_parts(solved, row)))
        step_value = float(scores.step.value_s[row])
        step = estimate_of(step_value, self.drawn.step_s[:, column], step_ground, extrapolated=extrapolated, note=notes)
        ground = weakest(step_ground, accept.provenance) if drafted else step_ground
        rate = float(scores.tok_per_s[row])
        draws = self.drawn.tok_per_s[:, column]
        total = estimate_of(rate, draws, ground, extrapolated=extrapolated)
        per_user = estimate_of(rate / n, draws / n, ground, extrapolated=extrapolated)
        tpot = estimate_of(
            float(scores.tpot_s[row]),
            self.drawn.step_s[:, column] / self.drawn.accept[:, column],
            ground,
            extrapolated=extrapolated,
        )
        fraction = float(solved.table.mem_fraction_static[cell.fraction])
        capacity = memory.capacity_tok(solved.request.models.hardware, cell, fraction)
        break_even = None
        if drafted and off_row is not None:
            off_rate = float(scores.tok_per_s[off_row])
            even_draws = self.drawn.step_s[:, column] * self.draws(off_row) / n
            break_even = estimate_of(step_value * off_rate / n, even_draws, step_ground)
        return Predicted(
            tok_per_s=total,
            tok_per_s_per_user=per_user,
            accept_len=accept,
            step_s=step,
            break_even_accept_len=break_even,
            tpot_s=tpot,
            ttft_s=ttft,
            n_running=n,
            wait_s=_wait_s(workload.target_c, n, workload.output_tok, rate),
            kv_capacity_tok=capacity,
            kv_needed_tok=float(memory.needed_tok[row]),
            memory_bytes=(
                ("weights", float(memory.weight_bytes[row])),
                ("draft", float(memory.draft_bytes[row])),
                ("graphs", float(memory.graph_bytes[row, cell.size])),
                ("reserve", memory.reserve_bytes),
                ("kv", capacity * float(memory.kv_bytes_per_tok[row])),
            ),
            step_parts=tuple(
                StepPart(name=name, step_s=float(values[row]), provenance=scores.step.provenance[name].value)
                for name, values in scores.step.parts.items()
                if abs(float(values[row])) > 1e-9
            ),
        )

    def _ground(self, row: int) -> Provenance:
        scores = self.solved.scores
        return weakest(*(scores.step.provenance[name] for name in _large_parts(self.solved, row)))


def _large_parts(solved: Solved, row: int) -> list[str]:
    """Parts that make up a tenth of the step or more: a sum is as well grounded as its weakest large part."""
    step = solved.scores.step
    large = [name for name, values in step.parts.items() if abs(float(values[row])) >= 0.1 * float(step.value_s[row])]
    return large or list(step.parts)


def _wait_s(target_c: int, n_running: float, output_tok: int, tok_per_s: float) -> float:
    """Mean wait of a request in a closed loop with more clients than running requests: Little's law on the queue,
    (C - C_eff) / X with X = tok_per_s / output_tok requests a second (models.md section 4.1)."""
    return max(0.0, target_c - n_running) * output_tok / tok_per_s
