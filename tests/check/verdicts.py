"""Verdicts of the recreated cases, and their table in docs/rules.md: ``python tests/check/verdicts.py`` renews it."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from planner.domain.report import Report
from planner.review import check

FOLDER = Path(__file__).parent / "cases"
PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
BEGIN, END = "<!-- verdicts: generated -->", "<!-- end of verdicts -->"
RIGHT = {
    "error": {"error"},
    "warn": {"warning", "note"},
    "info": {"warning", "note"},
    "ok": {"note", "none"},
}


def load_cases() -> list[dict[str, Any]]:
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))]


def report_of(case: dict[str, Any]) -> Report:
    return check(
        case["text"],
        hw=case.get("hw"),
        gpus=case.get("gpus"),
        model=case["model"],
        engine_version=case["engine_version"],
        form=case.get("form"),
    )


def worst_of(case: dict[str, Any]) -> str:
    worst = report_of(case).worst
    return worst.value if worst is not None else "none"


def table() -> str:
    """Kinds against right and wrong verdicts."""
    right: Counter[str] = Counter()
    every: Counter[str] = Counter()
    levels: Counter[tuple[str, str]] = Counter()
    for case in load_cases():
        worst = worst_of(case)
        every[case["kind"]] += 1
        right[case["kind"]] += worst in RIGHT[case["verdict"]]
        levels[case["verdict"], worst] += 1
    lines = ["| kind | launches | right |", "|---|---|---|"]
    lines += [f"| {kind} | {every[kind]} | {right[kind]} |" for kind in sorted(every)]
    lines.append(f"| all | {sum(every.values())} | {sum(right.values())} |")
    lines += ["", "| due | error | warning | note | none |", "|---|---|---|---|---|"]
    for due in RIGHT:
        found = " | ".join(str(levels[due, level]) for level in ("error", "warning", "note", "none"))
        lines.append(f"| {due} | {found} |")
    return "\n".join(lines)


def renewed(text: str) -> str:
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
