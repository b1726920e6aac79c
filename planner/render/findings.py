"""A review as text, JSON, GitHub workflow commands and GitLab code quality."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from planner.domain import Finding, Fix, Level
from planner.domain.report import LaunchReport, Report
from planner.render.sarif import sarif_text

__all__ = ["FORMATS", "effective_text", "fix_text", "render_report", "report_text"]


def render_report(report: Report, format_name: str, *, show_effective: bool = False) -> str:
    """The report in a format of :data:`FORMATS`, ending in a newline unless empty.

    Raises:
        KeyError: no such format.
    """
    if format_name == "text":
        return report_text(report, show_effective=show_effective)
    return FORMATS[format_name](report)


def report_text(report: Report, *, show_effective: bool = False) -> str:
    """For people: one block for each finding, then what was set aside and what was not read."""
    lines: list[str] = []
    for finding in report.findings:
        lines += _block(finding)
    if show_effective:
        for launch in report.launches:
            lines += effective_text(launch)
    for item in report.set_aside:
        lines.append(f"set aside  {_place(item.file, item.line, None)} {item.code}: {item.message}")
        lines.append(f"           by {item.by}: {item.reason}")
    for left in report.unreadable:
        lines.append(f"unreadable {_place(left.file, left.line, None)} {left.reason}")
    for text in report.skipped:
        lines.append(f"skipped    {text}")
    lines.append(_summary(report))
    return "\n".join(lines) + "\n"


def _block(finding: Finding) -> list[str]:
    place = _place(finding.file, finding.line, finding.column)
    head = f"{place} {finding.code} {finding.level.value} [{finding.consequence.value}] {finding.message}"
    lines = [head]
    if finding.why:
        lines.append(f"    why     {finding.why}")
    if finding.fix is not None:
        lines += [f"    fix     {line}" for line in fix_text(finding.fix)]
    lines += [f"    source  {source}" for source in finding.sources]
    return lines


def fix_text(fix: Fix) -> list[str]:
    """The edits of a fix as lines with ``+`` and ``-``, then its note."""
    lines = []
    for edit in fix.edits:
        name = _flag(edit.field)
        if edit.value is None:
            lines.append(f"- {name}")
        elif edit.field.startswith("--"):
            lines += [f"- {name}", f"+ {edit.value}"]
        elif edit.field.startswith("$"):
            lines.append(f"+ {name}={edit.value}")
        else:
            lines.append(f"+ {name}" if edit.value is True else f"+ {name} {edit.value}")
    if fix.note:
        lines.append(fix.note if fix.safe or not fix.edits else f"{fix.note} (needs a look)")
    return lines


def _flag(field: str) -> str:
    if field.startswith("$"):
        return field[1:]
    return field if field.startswith("--") else "--" + field.replace("_", "-")


def effective_text(launch: LaunchReport) -> list[str]:
    """Asked against effective: every value that the engine fills or changes, with the reason."""
    where = f"{launch.file}:{launch.line}"
    lines = [f"EFFECTIVE {where} engine {launch.engine_version} on {launch.hardware or 'an unknown machine'}"]
    for one in launch.decisions:
        before = "(default)" if one.before is None else one.before
        lines.append(f"    {one.field}: {before} -> {one.after}   {one.because} [{one.source}]")
    if launch.unknown:
        lines.append(f"    not read: {', '.join(launch.unknown)}")
    lines += [f"    note: {note}" for note in launch.notes]
    if launch.predicted:
        figures = dict(launch.predicted)
        lines.append(f"    predicted: {figures['tok_per_s']:.0f} tok/s [{figures['low']:.0f}, {figures['high']:.0f}]")
    elif launch.not_predicted:
        lines.append(f"    not predicted: {launch.not_predicted}")
    return lines


def _summary(report: Report) -> str:
    counts = {level: sum(one.level is level for one in report.findings) for level in Level}
    parts = [f"{number} {level.value}{'s' if number != 1 else ''}" for level, number in counts.items() if number]
    found = ", ".join(parts) if parts else "no findings"
    launches = len(report.launches)
    more = f", {len(report.set_aside)} set aside" if report.set_aside else ""
    return f"{found} in {launches} launch{'es' if launches != 1 else ''}{more}"


def _place(file: str | None, line: int | None, column: int | None) -> str:
    return ":".join(str(part) for part in (file or "<text>", line, column) if part is not None)


def _json(report: Report) -> str:
    return json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"


def _github(report: Report) -> str:
    """Workflow commands: annotations on the lines of a pull request."""
    word = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
    lines = []
    for one in report.findings:
        fields = [f"file={_property(one.file or '')}"]
        fields += [f"line={one.line}"] if one.line else []
        fields += [f"col={one.column}"] if one.column else []
        fields.append(f"title={_property(f'{one.code} {one.slug}')}")
        body = one.message
        if one.fix is not None:
            body += "\n" + "\n".join(fix_text(one.fix))
        lines.append(f"::{word[one.level]} {','.join(fields)}::{_data(body)}")
    for item in report.unreadable:
        line = f",line={item.line}" if item.line else ""
        lines.append(f"::error file={_property(item.file)}{line},title=unreadable::{_data(item.reason)}")
    return "".join(f"{line}\n" for line in lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _gitlab(report: Report) -> str:
    """Code quality report: a JSON list of issues."""
    severity = {Level.ERROR: "critical", Level.WARNING: "minor", Level.NOTE: "info"}
    rows = []
    for one in report.findings:
        key = "\x1f".join((one.file or "", one.code, one.message))
        rows.append(
            {
                "description": one.message,
                "check_name": one.code,
                "fingerprint": hashlib.sha256(key.encode()).hexdigest(),
                "severity": severity[one.level],
                "location": {"path": one.file or "<text>", "lines": {"begin": one.line or 1}},
            }
        )
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": report_text,
    "json": _json,
    "sarif": sarif_text,
    "github": _github,
    "gitlab": _gitlab,
}
