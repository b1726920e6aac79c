"""Report: keys, exit codes, order, formats."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from planner.domain import Level
from planner.domain.report import Report
from planner.errors import InputError
from planner.render.findings import FORMATS, render_report
from planner.render.sarif import sarif
from planner.review import check

BAD = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\\n  --enable_metrics --port 1 --port 2\n"
GOOD = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B\n"


def test_a_path_that_is_not_there_is_not_read_as_a_launch(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nofile\.sh: no such file"):
        check(str(tmp_path / "nofile.sh"))


SARIF_SUBSET = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "shortDescription": {"$ref": "#/$defs/text"},
                                                "fullDescription": {"$ref": "#/$defs/text"},
                                                "help": {"$ref": "#/$defs/text"},
                                                "defaultConfiguration": {
                                                    "properties": {"level": {"$ref": "#/$defs/level"}}
                                                },
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "level": {"$ref": "#/$defs/level"},
                                "message": {"$ref": "#/$defs/text"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "locations": {"type": "array", "items": {"$ref": "#/$defs/location"}},
                                "partialFingerprints": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                            },
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"]},
                    },
                },
            },
        },
    },
    "$defs": {
        "level": {"enum": ["none", "note", "warning", "error"]},
        "text": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation"],
                    "properties": {
                        "artifactLocation": {"required": ["uri"], "properties": {"uri": {"type": "string"}}},
                        "region": {
                            "properties": {
                                "startLine": {"type": "integer", "minimum": 1},
                                "startColumn": {"type": "integer", "minimum": 1},
                            }
                        },
                    },
                }
            },
        },
    },
}
"""The parts of the SARIF 2.1.0 schema that a log of ours uses."""


def test_keys_of_the_json_report() -> None:
    data = json.loads(render_report(check(BAD, engine_version="0.5.16", hw="b200"), "json"))
    assert {"findings", "launches", "skipped"} <= set(data)
    finding = data["findings"][0]
    wanted = {"code", "level", "consequence", "file", "line", "column", "message", "fix", "sources"}
    assert wanted <= set(finding)
    assert finding["code"] == "FLG002"
    assert (finding["line"], finding["column"]) == (2, 3)
    launch = data["launches"][0]
    assert {"effective", "decisions", "predicted"} <= set(launch)
    assert launch["effective"]["tp_size"] == 1
    assert launch["not_predicted"]


def test_worst_first_and_exit_codes() -> None:
    report = check(BAD, engine_version="0.5.16")
    levels = [finding.level for finding in report.findings]
    assert levels == sorted(levels, key=[Level.ERROR, Level.WARNING, Level.NOTE].index)
    assert report.exit_code() == 1
    assert report.exit_code(None) == 0
    assert check(GOOD).exit_code() == 0
    silent = check(GOOD + GOOD.replace("8B", "8B --port 1 --port 2"))
    assert silent.exit_code() == 0
    assert silent.exit_code(Level.WARNING) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("echo hello\n", "no SGLang launch"),
        ("python3 -m sglang.launch_server --model-path 'x\n", ""),
        ("a: [1, 2\nb: }\n", ""),
    ],
)
def test_unreadable_is_exit_2_with_a_reason_and_a_line(text: str, reason: str) -> None:
    report = check(text)
    assert report.exit_code() == 2
    assert reason in report.unreadable[0].reason
    assert report.unreadable[0].line is not None


def test_other_files_are_checked_beside_an_unreadable_one(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(BAD)
    (tmp_path / "b.sh").write_bytes(b"python3 -m sglang.launch_server \xff\xfe --tp 8\n")
    (tmp_path / "c.txt").write_text("nothing here\n")
    report = check(tmp_path, engine_version="0.5.16")
    assert any(finding.code == "FLG002" and finding.file.endswith("a.sh") for finding in report.findings)
    assert any("c.txt" in line for line in report.skipped)


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("text", [BAD, GOOD, ""])
def test_every_format_renders(name: str, text: str) -> None:
    out = render_report(check(text, engine_version="0.5.16"), name)
    assert out.endswith("\n") or out == ""
    if name in ("json", "sarif", "gitlab"):
        json.loads(out)


@pytest.mark.parametrize("text", [BAD, GOOD, ""])
def test_sarif_follows_its_schema(text: str) -> None:
    log = sarif(check(text, engine_version="0.5.16"))
    jsonschema.Draft202012Validator(SARIF_SUBSET).validate(log)
    run = log["runs"][0]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_github_annotations_escape_their_text() -> None:
    """A raw newline or colon would cut the annotation off or end its properties."""
    out = render_report(check(BAD, engine_version="0.5.16"), "github")
    lines = out.splitlines()
    assert lines[0].startswith("::error file=<text>,line=2,col=3,title=FLG002 underscore-flag::")
    assert "%0A" in lines[0]
    assert all(line.startswith("::") for line in lines)


def test_gitlab_fingerprints_are_unique() -> None:
    rows = json.loads(render_report(check(BAD, engine_version="0.5.16"), "gitlab"))
    assert len({row["fingerprint"] for row in rows}) == len(rows)
    assert {row["severity"] for row in rows} <= {"info", "minor", "major", "critical", "blocker"}


def test_an_empty_report_is_clean() -> None:
    assert Report().exit_code() == 0
    assert "no findings" in render_report(Report(), "text")
