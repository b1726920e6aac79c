"""The accuracy table: as text, as JSON, and as the Markdown that the documentation quotes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

from planner.domain.fitting import AccuracyRow

__all__ = ["accuracy_json", "accuracy_markdown", "accuracy_text"]

_WIDTH = 118
_COLUMNS = ("n", "MAPE", "P90", "bias", "in 90 %", "goal")


def accuracy_text(rows: Sequence[AccuracyRow]) -> str:
    """A table with notes below it."""
    cells = [(row.group, *_cells(row)) for row in rows]
    group = max(len("what"), *(len(cell[0]) for cell in cells))
    widths = [max(len(name), *(len(cell[i + 1]) for cell in cells)) for i, name in enumerate(_COLUMNS[:-1])]
    lines = [_line(("what", *_COLUMNS), group, widths)]
    lines += [_line(cell, group, widths) for cell in cells]
    notes: dict[str, list[int]] = {}
    for number, row in enumerate(rows, 1):
        if row.note:
            notes.setdefault(row.note, []).append(number)
    lines.append("")
    for note, numbers in notes.items():
        first = f"rows {numbers[0]}-{numbers[-1]}: " if len(numbers) > 1 else f"row {numbers[0]}: "
        lines += textwrap.wrap(first + note, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    met = [row.met for row in rows if row.met is not None]
    lines += ["", f"{sum(met)} of {len(met)} goals met; every figure is leave-out"]
    missed = [f"missed: {row.group} ({row.goal})" for row in rows if row.met is False]
    return "\n".join([*lines, *missed]) + "\n"


def accuracy_json(rows: Sequence[AccuracyRow]) -> str:
    """A list of objects; errors and coverage are fractions."""
    names = ("group", "n", "mape", "p90", "bias", "coverage", "goal", "met", "note")
    body = [{name: getattr(row, name) for name in names} for row in rows]
    return json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def accuracy_markdown(rows: Sequence[AccuracyRow]) -> str:
    """The table that the documentation quotes. Notes are left out: they hold times of this machine."""
    lines = [f"| what | {' | '.join(_COLUMNS)} |", "|" + "---|" * (len(_COLUMNS) + 1)]
    lines += [f"| {row.group} | {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cells(row: AccuracyRow) -> tuple[str, ...]:
    def percent(value: float | None, sign: str = "") -> str:
        return "-" if value is None else f"{100 * value:{sign}.1f} %"

    goal = "-" if row.met is None else f"{row.goal}: {'met' if row.met else 'MISSED'}"
    return (str(row.n), percent(row.mape), percent(row.p90), percent(row.bias, "+"), percent(row.coverage), goal)


def _line(cells: Sequence[str], group: int, widths: Sequence[int]) -> str:
    numbers = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells[1:-1], widths, strict=True))
    return f"{cells[0]:<{group}}  {numbers}  {cells[-1]}".rstrip()
