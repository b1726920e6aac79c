"""Findings that someone has set aside: inline, in ``[tool.plan-config]`` of a pyproject.toml, or in a baseline file.

A reason is required everywhere but in a baseline. What is set aside is listed in the report, never dropped in silence.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatch

from planner._record import record
from planner.domain import Finding
from planner.domain.report import SetAside
from planner.errors import InputError, Problem
from planner.parse import Suppression
from planner.rules import rule_of

__all__ = ["Settings", "baseline_of", "fingerprint", "read_baseline", "read_settings", "set_aside"]


@record()
class Settings:
    """``[tool.plan-config]``: codes with a reason, and codes by file pattern."""

    ignore: Mapping[str, str] = field(default_factory=dict)
    per_file: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    """Defaults of ``check``: hw, gpus, model, engine_version, dialect, fail_on."""


_OPTIONS = ("hw", "gpus", "model", "drafter", "engine-version", "dialect", "fail-on")


def read_settings(text: str, *, name: str) -> Settings:
    """Reads the table of a pyproject.toml; a file without it gives no settings.

    Raises:
        InputError: TOML that does not parse, a code that does not exist, or an entry without a reason.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError([Problem(f"not valid TOML: {error}", file=name)]) from None
    table = data.get("tool", {}).get("plan-config", {})
    problems: list[Problem] = []
    for key in table.keys() - {"ignore", "per-file-ignore", *_OPTIONS}:
        problems.append(Problem("unknown key in [tool.plan-config]", file=name, field=str(key)))
    ignore = _reasons(table.get("ignore", {}), "ignore", name, problems)
    per_file: dict[str, Mapping[str, str]] = {}
    for pattern, codes in dict(table.get("per-file-ignore", {})).items():
        per_file[pattern] = _reasons(codes, f"per-file-ignore.{pattern}", name, problems)
    if problems:
        raise InputError(problems)
    options = {key.replace("-", "_"): table[key] for key in _OPTIONS if key in table}
    return Settings(ignore, per_file, options)


def _reasons(value: object, where: str, name: str, problems: list[Problem]) -> Mapping[str, str]:
    if not isinstance(value, dict):
        problems.append(Problem('needs the form CODE = "reason"', file=name, field=where))
        return {}
    kept = {}
    for code, reason in value.items():
        if not isinstance(reason, str) or not reason.strip():
            problems.append(Problem(f"{code} needs a reason", file=name, field=where))
        else:
            kept[str(code).upper()] = reason
    return kept


def fingerprint(finding: Finding) -> str:
    """Identity of a finding that survives moved lines: file, code and message."""
    text = "\x1f".join((finding.file or "", finding.code, finding.message))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def baseline_of(findings: Iterable[Finding]) -> str:
    """A baseline file that sets these findings aside."""
    rows = [
        {"fingerprint": fingerprint(one), "code": one.code, "file": one.file, "message": one.message}
        for one in findings
    ]
    rows.sort(key=lambda row: (str(row["file"]), str(row["code"]), str(row["message"])))
    return json.dumps({"schema_version": 1, "findings": rows}, indent=2, ensure_ascii=False) + "\n"


def read_baseline(text: str, *, name: str) -> frozenset[str]:
    """Fingerprints of a baseline file.

    Raises:
        InputError: not a baseline file.
    """
    try:
        data = json.loads(text)
        if data["schema_version"] != 1:
            raise InputError([Problem(f"unknown schema_version {data['schema_version']!r}", file=name)])
        return frozenset(str(row["fingerprint"]) for row in data["findings"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(
            [Problem(f"not a baseline file ({error})", file=name, hint="make one with check --write-baseline FILE")]
        ) from None


def set_aside(
    findings: Sequence[Finding],
    *,
    inline: Sequence[Suppression] = (),
    spans: Sequence[tuple[int, int]] = (),
    settings: Settings | None = None,
    baseline: frozenset[str] = frozenset(),
) -> tuple[tuple[Finding, ...], tuple[SetAside, ...], tuple[str, ...]]:
    """Splits findings into those that count and those set aside; the third part names suppressions that did nothing or
    lack a reason.

    Args:
        spans: first and last line of each launch. A comment alone on the line above a launch covers all of it: inside a
            continued command there is no place for a comment.
    """
    settings = settings or Settings()
    kept: list[Finding] = []
    aside: list[SetAside] = []
    used: set[int] = set()
    for finding in findings:
        reason, by = _reason(finding, inline, spans, settings, used)
        if reason is None and fingerprint(finding) in baseline:
            reason, by = "in the baseline", "baseline"
        if reason is None:
            kept.append(finding)
            continue
        aside.append(
            SetAside(
                code=finding.code,
                file=finding.file,
                line=finding.line,
                message=finding.message,
                reason=reason,
                by=by,
            )
        )
    notes = [
        f"line {one.line}: ignore={','.join(one.codes)} "
        + ("has no reason and is not applied" if not one.reason.strip() else "matches no finding")
        for index, one in enumerate(inline)
        if index not in used
    ]
    return tuple(kept), tuple(aside), tuple(notes)


def _reason(
    finding: Finding,
    inline: Sequence[Suppression],
    spans: Sequence[tuple[int, int]],
    settings: Settings,
    used: set[int],
) -> tuple[str | None, str]:
    for index, one in enumerate(inline):
        last = one.line
        if one.own_line:
            last = max([one.line + 1, *(end for begin, end in spans if begin == one.line + 1)])
        covered = finding.line is not None and one.line <= finding.line <= last
        if one.reason.strip() and covered and _named(finding, one.codes):
            used.add(index)
            return one.reason, "inline"
    for code, reason in settings.ignore.items():
        if _named(finding, (code,)):
            return reason, "pyproject.toml"
    for pattern, codes in settings.per_file.items():
        if finding.file is not None and fnmatch(finding.file, pattern):
            for code, reason in codes.items():
                if _named(finding, (code,)):
                    return reason, "pyproject.toml"
    return None, ""


def _named(finding: Finding, codes: Sequence[str]) -> bool:
    """Whether one of the codes (or slugs, in any case) names the finding."""
    for code in codes:
        if code.upper() == finding.code.upper() or code.lower() == finding.slug:
            return True
        rule = rule_of(code)
        if rule is not None and rule.code == finding.code:
            return True
    return False
