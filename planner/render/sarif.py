"""A review in SARIF 2.1.0 (OASIS), for code scanning."""

from __future__ import annotations

import json
from pathlib import PurePath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from planner.domain import Finding, Level
from planner.domain.report import Report

__all__ = ["SARIF_SCHEMA", "sarif", "sarif_text"]

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}
_SEVERITY = {Level.ERROR: "8.0", Level.WARNING: "5.0", Level.NOTE: "1.0"}


def sarif_text(report: Report) -> str:
    """The report as SARIF text."""
    return json.dumps(sarif(report), indent=2, ensure_ascii=False) + "\n"


def sarif(report: Report) -> dict[str, Any]:
    """The report as a SARIF log with one run; unreadable files are notifications of the run."""
    codes = sorted({one.code for one in report.findings})
    index = {code: number for number, code in enumerate(codes)}
    first = {code: next(one for one in report.findings if one.code == code) for code in codes}
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "plan-config",
                        "rules": [_rule(first[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(one, index[one.code]) for one in report.findings],
                "invocations": [
                    {
                        "executionSuccessful": not report.unreadable,
                        "toolExecutionNotifications": [
                            {
                                "level": "error",
                                "message": {"text": item.reason},
                                "locations": [_location(item.file, item.line, None)],
                            }
                            for item in report.unreadable
                        ],
                    }
                ],
            }
        ],
    }


def _rule(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.code,
        "name": "".join(part.capitalize() for part in finding.slug.split("-")),
        "shortDescription": {"text": finding.slug.replace("-", " ")},
        "fullDescription": {"text": finding.why or finding.message},
        "help": {"text": "\n".join(finding.sources) or finding.message},
        "defaultConfiguration": {"level": _LEVEL[finding.level]},
        "properties": {
            "tags": ["sglang", finding.consequence.value],
            "security-severity": _SEVERITY[finding.level],
        },
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": _LEVEL[finding.level],
        "message": {"text": finding.message},
        "locations": [_location(finding.file, finding.line, finding.column)],
        "partialFingerprints": {"planConfig/v1": f"{finding.code}:{finding.file or ''}:{finding.message}"},
        "properties": {"consequence": finding.consequence.value, "sources": list(finding.sources)},
    }


def _location(file: str | None, line: int | None, column: int | None) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": line or 1}
    if column is not None:
        region["startColumn"] = column
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": region}}


def _uri(file: str | None) -> str:
    path = file or "text"
    if "://" in path:
        return quote(path, safe=":/?&=%")
    pure = PureWindowsPath(path) if "\\" in path else PurePath(path)
    return quote(pure.as_posix(), safe="/:")
