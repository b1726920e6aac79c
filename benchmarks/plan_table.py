"""The plans over concurrency in ``docs/plan_table.md``: ``python -m benchmarks.plan_table`` prints the tables.

``python -m benchmarks.refresh_docs`` writes them into the page; a test compares.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import planner
from planner.domain.describe import describe, draft_words, layout_words

__all__ = ["BOXES", "CONCURRENCIES", "flips", "plan_row", "plan_tables"]

BOXES = ("b300", "rtx_pro_6000")
CONCURRENCIES = (1, 8, 32, 64, 128, 192, 256, 512)
ROWS = "VERIFY-ROWS-X-HEADS"


def plan_tables() -> str:
    """One table a machine, and below each where the answer changes."""
    return "\n".join("\n".join(_box(hw)) for hw in BOXES)


def _box(hw: str) -> Iterator[str]:
    plans = {c: planner.plan(hw, c) for c in CONCURRENCIES}
    yield f"### {hw}"
    yield ""
    yield "| C | plan | tok/s | off | break-even accept | verify rows x heads | row limit costs |"
    yield "|---|---|---|---|---|---|---|"
    for c, plan in plans.items():
        yield plan_row(c, plan)
    yield ""
    yield "The form of the answer changes at:"
    yield ""
    for c, before, after in flips(hw, plans):
        yield f"- C = {c}: {before} becomes {after}"
    yield ""


def plan_row(c: int, plan: planner.Plan) -> str:
    if plan.effective is None or plan.predicted is None:
        assert plan.conflict is not None
        return f"| {c} | infeasible: {', '.join(plan.conflict.ids)} | | | | | |"
    rate, even = plan.predicted.tok_per_s, plan.predicted.break_even_accept_len
    off = "-" if plan.off is None else f"{plan.off.predicted.tok_per_s.value:,.0f}"
    rows = next((limit for limit in plan.binding if limit.id.endswith(ROWS)), None)
    stands = "-" if rows is None or rows.plan is None else f"{rows.plan:,.0f} of {rows.known_good:,.0f}"
    costs = "-" if rows is None else f"{rows.cost_tok_per_s:,.0f}"
    return (
        f"| {c} | {describe(plan.effective)} | {rate.value:,.0f} [{rate.low:,.0f}-{rate.high:,.0f}] | {off} | "
        f"{'-' if even is None else f'{even.value:.1f}'} | {stands} | {costs} |"
    )


def flips(hw: str, plans: dict[int, planner.Plan]) -> Iterator[tuple[int, str, str]]:
    """``(C, form before, form from C on)``, by bisection between neighbours of the table that differ in form.

    The form is the draft (tree, chain or off) with the parallel layout; budgets move without counting as a change.
    """
    forms = {c: _form(plan) for c, plan in plans.items()}
    points = sorted(forms)
    for low, high in itertools.pairwise(points):
        yield from _between(hw, low, forms[low], high, forms[high])


def _between(hw: str, low: int, before: str, high: int, after: str) -> Iterator[tuple[int, str, str]]:
    if before == after:
        return
    if high - low == 1:
        yield high, before, after
        return
    middle = (low + high) // 2
    form = _form(planner.plan(hw, middle))
    yield from _between(hw, low, before, middle, form)
    yield from _between(hw, middle, form, high, after)


def _form(plan: planner.Plan) -> str:
    if plan.effective is None:
        return "infeasible"
    kind = draft_words(plan.effective).split(" ")[0].replace("speculation", "off")
    return f"{kind}, {layout_words(plan.effective).split(',')[0]}"


if __name__ == "__main__":
    print(plan_tables(), end="")
