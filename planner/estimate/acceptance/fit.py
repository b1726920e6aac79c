"""``fit_acceptance``: from one or a few measured accept lengths to a curve over all budgets, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.errors import DomainError, InputError, Problem, nearest_hint
from planner.estimate.acceptance.conditions import CHAIN_TO_TREE, CHAIN_TO_TREE_SD_FRAC
from planner.estimate.acceptance.family import MAX_BUDGET, TreeShape, curve_table
from planner.estimate.acceptance.points import CurvePoint, read_points
from planner.estimate.acceptance.posterior import BASE_SD_FRAC, Posterior, noise_sd_frac, tree_posterior
from planner.estimate.acceptance.tree import TreeAcceptance, check_block_size

if TYPE_CHECKING:
    from planner.estimate.acceptance.chain import ChainAcceptance

__all__ = ["fit_acceptance"]

FloatArray = NDArray[np.float64]

_N_PARAMETERS = 4
_REFUSED_RMS_FRAC = (0.065, 0.065, 0.08, 0.12)
"""By number of points (the last for all larger): points that the best curve misses by more than this (root mean
square) are not one curve. Any two points of one curve can be met; with more, the form itself may be off by a few per
cent. The largest misfit of two or three points in public data is 3.7 %."""


def _contradiction(points: Sequence[CurvePoint], posterior: Posterior, sd_frac: FloatArray) -> None:
    """Points that no curve of the family comes near are not one curve."""
    rms = posterior.misfit * float(np.sqrt(np.mean(sd_frac**2)))
    if rms <= _REFUSED_RMS_FRAC[min(len(points), len(_REFUSED_RMS_FRAC)) - 1]:
        return
    shown = ", ".join(f"{p.accept_len:g} at budget {p.budget}" for p in points)
    raise InputError(
        f"the points contradict each other ({shown}): the nearest curve misses them by {100 * rms:.0f} % (rms)",
        "the budget alone cannot explain it: other prompts, a bonus token counted in some runs only, or a broken "
        "verify pass; measure the budgets on one prompt set and fit them apart until then",
    )


def fit_acceptance(
    points: Iterable[object],
    block_size: int = 16,
    topk: int | None = None,
    kind: str = "tree",
    *,
    tree_shape: TreeShape | str = TreeShape.BEST_FIRST,
) -> TreeAcceptance | ChainAcceptance:
    """Fit accept length against draft budget to a few measured points.

    Args:
        points: ``(budget, accept_len)`` or ``(budget, accept_len, rounds)`` tuples, mappings with these and ``topk``,
            ``kind``, ``domain``, ``context_tok``, ``temperature``, ``bonus_counted``, or profile points. Budgets
            exclude the root; accept lengths include the bonus token. A tree fit may hold chain points of the same
            drafter.
        block_size: tokens of one draft block with the bonus token (EAGLE: steps + 1; MTP: heads + 1).
        topk: alternates per depth of the points that do not say; None: no restriction.
        kind: ``tree`` or ``chain`` (a chain drafter, MTP heads: logit-decay form over drafted tokens).
        tree_shape: how the engine picks nodes: ``best_first``, ``spine`` or ``eagle``.

    Returns:
        A :class:`TreeAcceptance` or :class:`ChainAcceptance`; both have ``predict`` and ``sample``.

    Raises:
        InputError: no points, a point above its cap, duplicated or contradictory points, traffic or bonus counting
            mixed.
        DomainError: a budget above 1024.
    """
    check_block_size(block_size)
    if kind not in ("tree", "chain"):
        raise InputError(
            [
                Problem(
                    "kind is tree or chain", field="kind", value=kind, hint=nearest_hint(str(kind), ("tree", "chain"))
                )
            ]
        )
    if topk is not None and (not isinstance(topk, Integral) or isinstance(topk, bool) or topk < 1):
        raise InputError([Problem("topk must be a whole number of at least 1", field="topk", value=topk)])
    try:
        shape = TreeShape(tree_shape)
    except ValueError:
        known = [item.value for item in TreeShape]
        raise InputError(
            [
                Problem(
                    "unknown tree shape",
                    field="tree_shape",
                    value=tree_shape,
                    hint=nearest_hint(str(tree_shape), known),
                )
            ]
        ) from None
    if shape is TreeShape.EAGLE and kind == "tree" and topk is None:
        raise InputError(
            [Problem("an EAGLE tree needs its topk", field="topk", hint="the value of --speculative-eagle-topk")]
        )
    read = read_points(points, kind=kind, max_depth=block_size - 1)
    if kind == "chain":
        from planner.estimate.acceptance.chain import fit_chain

        return fit_chain(read, block_size=block_size)
    return _fit_tree(read, block_size=block_size, topk=topk, shape=shape)


def _fit_tree(points: tuple[CurvePoint, ...], *, block_size: int, topk: int | None, shape: TreeShape) -> TreeAcceptance:
    points = tuple(replace(p, topk=p.topk or topk) if p.kind == "tree" else p for p in points)
    too_large = [p.budget for p in points if p.budget > MAX_BUDGET]
    if too_large:
        raise DomainError(f"budgets above {MAX_BUDGET} are outside the model: {too_large}")
    columns = []
    for point in points:
        chain = point.kind == "chain"
        table = curve_table(
            block_size - 1,
            topk=1 if chain else point.topk,
            shape=TreeShape.BEST_FIRST if chain else shape,
            max_budget=point.budget,
        )
        columns.append(table.at([point.budget])[:, 0])
    rounds = np.array([np.nan if p.rounds is None else p.rounds for p in points], dtype=float)
    sd_frac = noise_sd_frac(rounds)
    chains = np.array([p.kind == "chain" for p in points])
    if chains.any() and not chains.all():
        sd_frac = np.where(chains, np.hypot(sd_frac, CHAIN_TO_TREE_SD_FRAC), sd_frac)
    posterior = tree_posterior(columns, np.array([p.accept_len for p in points]), sd_frac)
    _contradiction(points, posterior, sd_frac)
    notes = []
    if len(points) < _N_PARAMETERS:
        notes.append(f"{len(points)} of {_N_PARAMETERS} parameters measured, the prior holds the rest")
    noise = float(np.sqrt(np.mean(sd_frac**2)))
    if posterior.misfit > 1:
        noise *= posterior.misfit
        notes.append(f"the points scatter by {100 * noise:.1f} % about the curve, more than assumed")
    if all(p.bonus_counted is None for p in points):
        notes.append("bonus token taken as counted (not stated)")
    common = {p.topk for p in points if p.kind == "tree"}
    default_topk = topk if topk is not None else (common.pop() if len(common) == 1 else None)
    return TreeAcceptance(
        block_size=block_size,
        topk=default_topk,
        shape=shape,
        points=points,
        posterior=posterior,
        noise_frac=max(noise, BASE_SD_FRAC),
        notes=tuple(notes),
        chain_to_tree=CHAIN_TO_TREE if chains.all() else None,
    )
