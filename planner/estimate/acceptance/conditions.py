"""What other traffic does to accepted draft tokens: domain, sampling temperature, context length.

All factors act on accept length minus 1 (the accepted draft tokens). They come from few public tables, so their
ranges are wide; a measurement on the traffic itself replaces them. Tensor parallelism and concurrency do not enter:
SGLang PR #16818 drifts by less than 3 % from 1 to 32 requests and TP1 to TP8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import Domain
from planner.errors import InputError, Problem, nearest_hint
from planner.estimate.acceptance.points import CurvePoint

__all__ = [
    "CHAIN_TO_TREE",
    "CHAIN_TO_TREE_SD_FRAC",
    "CONTEXT_EXPONENT",
    "DEFAULT_TRAIN_CONTEXT_TOK",
    "DOMAIN_FACTOR",
    "TEMPERATURE_FACTOR",
    "Shift",
    "context_factor",
    "shift_draws",
    "temperature_factor",
    "traffic_shift",
]

_Range = tuple[float, float, float]
"""low (5 %), value, high (95 %)."""

TEMPERATURE_FACTOR: _Range = (0.67, 0.89, 0.98)
"""(tau - 1) at T=1 over T=0: smallest, mean and largest of 30 pairs; arXiv:2604.12989, Table 1, DDTree at its best
budget (as tau itself: mean 0.90, minimum 0.71)."""

DOMAIN_FACTOR: dict[tuple[str, str], _Range] = {
    ("code", "chat"): (0.28, 0.51, 0.69),
    ("code", "math"): (0.70, 1.02, 1.17),
    ("chat", "code"): (1.44, 1.96, 3.55),
    ("chat", "math"): (1.51, 1.83, 2.68),
    ("math", "code"): (0.85, 0.98, 1.43),
    ("math", "chat"): (0.37, 0.55, 0.66),
}
"""(tau - 1) of one domain over another on one target: 5 %, median and 95 % quantiles over dataset pairs and three
targets at T=0; arXiv:2604.12989, Table 1. Code: HumanEval, MBPP, LiveCodeBench; chat: MT-Bench, Alpaca; math: GSM8K,
MATH-500, AIME. SWE-bench Lite is left out: its prompts are repository text and its accept lengths are those of
chat."""

CONTEXT_EXPONENT: _Range = (0.18, 0.35, 0.48)
"""(tau - 1) falls as (context / training length) ** -exponent beyond the training length: smallest, mean and largest
of seven ratios; DFlash, arXiv:2602.06036, Table 4 (drafter trained at 4K, LongBench at 8K to 32K)."""

DEFAULT_TRAIN_CONTEXT_TOK = 4096
"""Training length assumed where the drafter's is not known (that of Table 4's base drafter)."""


@record()
class Shift:
    """Factor on accept length minus 1, with its 90 % range."""

    value: float
    low: float
    high: float
    extrapolated: bool
    note: str


CHAIN_TO_TREE = Shift(1.05, 1.0, 1.10, False, "tree from chain points: measured trees lie 1 to 7 % above the family")
"""Trees predicted from a chain alone come out low: by 4 to 7 % at budgets 16 to 128 (92 cells of ALL_RESULTS in
jwlaboratory/diffusion-sparked-tree @4844c82c6b40) and by 1 to 5 % in arXiv:2604.12989 (Figure 3, Table 1)."""

CHAIN_TO_TREE_SD_FRAC = 0.03
"""Extra noise of a chain point that is pooled with tree points, for the same reason."""


@lru_cache(maxsize=8)
def _spread(n: int) -> NDArray[np.float64]:
    """``n`` normal quantiles in bit-reversed order, so that they are not aligned with the order of the draws."""
    normal = NormalDist()
    n_bits = max(1, (n - 1).bit_length())
    order = [int(f"{i:0{n_bits}b}"[::-1], 2) for i in range(2**n_bits)]
    ranks = np.array([i for i in order if i < n])
    return np.array([normal.inv_cdf((i + 0.5) / n) for i in ranks])


def shift_draws(shift: Shift, n: int, *, stride: int = 1) -> NDArray[np.float64]:
    """``n`` draws of the factor, (n,): lognormal on each side of the value, 5 % and 95 % at its low and high.

    Factors that are drawn together take different strides (odd numbers), so that they do not move together.
    """
    z = _spread(n)[np.arange(n) * stride % n] / 1.6448536269514722
    up, down = math.log(shift.high / shift.value), math.log(shift.value / shift.low)
    return np.asarray(shift.value * np.exp(np.where(z > 0, z * up, z * down)))


def temperature_factor(temperature: float) -> _Range:
    """Factor on accept length minus 1 against greedy decoding: linear in T through 1 at T=0 and the measured ratio at
    T=1."""
    low, value, high = (max(0.2, 1 - (1 - factor) * temperature) for factor in TEMPERATURE_FACTOR)
    return low, value, high


def context_factor(context_tok: float, train_context_tok: int) -> _Range:
    """Factor on accept length minus 1 against contexts within the training length."""
    ratio = max(1.0, context_tok / train_context_tok)
    gentle, middle, steep = CONTEXT_EXPONENT
    return ratio**-steep, ratio**-middle, ratio**-gentle


def _over(new: _Range, old: _Range) -> _Range:
    """Ratio of two factors that move together (the same unknown exponent or slope stands behind both)."""
    ratios = sorted(a / b for a, b in zip(new, old, strict=True))
    return ratios[0], new[1] / old[1], ratios[2]


def _only(points: Sequence[CurvePoint], field: str) -> object:
    """The one known value of a field over all points, or None."""
    values = {getattr(point, field) for point in points} - {None, "unknown"}
    return values.pop() if len(values) == 1 else None


def traffic_shift(
    points: Sequence[CurvePoint],
    *,
    domain: Domain | str | None,
    temperature: float | None,
    context_tok: float | None,
    train_context_tok: int | None,
) -> Shift | None:
    """The factor from the traffic of ``points`` to the traffic asked for; None where nothing changes.

    A condition that the points do not state is taken as greedy decoding and a context within the training length. An
    unknown domain cannot be changed: the factor stays 1 and the answer is marked extrapolated.

    Raises:
        InputError: an unknown domain name, a temperature below 0, a context below 1.
    """
    problems = []
    names = [item.value for item in Domain]
    wanted = Domain.UNKNOWN.value if domain is None else str(getattr(domain, "value", domain))
    if wanted not in names:
        problems.append(Problem("unknown domain", field="domain", value=wanted, hint=nearest_hint(wanted, names)))
    if temperature is not None and not (math.isfinite(temperature) and temperature >= 0):
        problems.append(Problem("must be a number from 0 up", field="temperature", value=temperature))
    for name, value in (("context_tok", context_tok), ("train_context_tok", train_context_tok)):
        if value is not None and not (math.isfinite(value) and value >= 1):
            problems.append(Problem("must be at least 1", field=name, value=value))
    if problems:
        raise InputError(problems)

    factors: list[_Range] = []
    notes: list[str] = []
    extrapolated = False
    measured_domain = _only(points, "domain")
    if wanted not in ("unknown", measured_domain):
        if measured_domain is None:
            notes.append(f"domain of the points unknown, not carried over to {wanted}")
            extrapolated = True
        else:
            factors.append(DOMAIN_FACTOR[str(measured_domain), wanted])
            notes.append(f"carried from {measured_domain} to {wanted} by arXiv:2604.12989 Table 1")
    measured_temperature = _only(points, "temperature")
    old_temperature = float(measured_temperature) if isinstance(measured_temperature, (int, float)) else 0.0
    if temperature is not None and temperature != old_temperature:
        factors.append(_over(temperature_factor(temperature), temperature_factor(old_temperature)))
        notes.append(f"carried from T={old_temperature:g} to T={temperature:g} by arXiv:2604.12989 Table 1")
        extrapolated |= temperature > 1
    if context_tok is not None:
        train = train_context_tok or DEFAULT_TRAIN_CONTEXT_TOK
        measured_context = _only(points, "context_tok")
        old_context = float(measured_context) if isinstance(measured_context, (int, float)) else 1.0
        change = _over(context_factor(context_tok, train), context_factor(old_context, train))
        if change != (1.0, 1.0, 1.0):
            if train_context_tok is None:
                change = (min(change[0], 1.0), change[1], max(change[2], 1.0))
                extrapolated = True
            factors.append(change)
            told = "" if train_context_tok is not None else " (assumed)"
            notes.append(f"context {context_tok:g} tok, drafter trained to {train}{told}: arXiv:2602.06036 Table 4")
    if not notes:
        return None
    value = math.prod(factor[1] for factor in factors)
    down = math.hypot(*(math.log(factor[1] / factor[0]) for factor in factors), 0.0)
    up = math.hypot(*(math.log(factor[2] / factor[1]) for factor in factors), 0.0)
    return Shift(value, value * math.exp(-down), value * math.exp(up), extrapolated, "; ".join(notes))
