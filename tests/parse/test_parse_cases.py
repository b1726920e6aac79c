"""Every case of ``tests/parse/cases``: a text, and the launches that a reader of it would expect."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from planner.parse import ParsedLaunch, Token, parse_text

CASES = Path(__file__).with_name("cases")
_IDENTITIES = ("condition", "group", "name")


def load() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    for path in sorted(CASES.glob("*.yaml")):
        cases += YAML(typ="safe", pure=True).load(path.read_text())
    return cases


def shown(token: Token) -> str:
    return token.text if token.text is not None else f"?{token.raw}"


def env_of(launch: ParsedLaunch) -> list[str]:
    return [
        f"{item.name}={'?' if item.value.text is None else item.value.text} {item.how.value}" for item in launch.env
    ]


def facts(launch: ParsedLaunch) -> dict[str, Any]:
    container, job = launch.container, launch.job
    return {
        "launcher": launch.launcher.value,
        "role": launch.role.value if launch.role else None,
        "form": launch.form.value,
        "keyed": launch.keyed,
        "condition": launch.condition,
        "group": launch.group,
        "name": launch.name,
        "image": launch.image.text if launch.image else None,
        "nodes": job.nodes if job else None,
        "gpus_per_node": job.gpus_per_node if job else None,
        "notes": " ".join(note.kind.value for note in launch.notes),
        "off": " ".join(flag.name for flag in launch.switched_off),
    } | {
        key: getattr(container, key) if container else None
        for key in ("gpus", "n_gpus", "shm_bytes", "shm_mounted", "ipc_host", "privileged")
    }


def check(launch: ParsedLaunch, expected: dict[str, Any]) -> None:
    assert [shown(token) for token in launch.argv] == shlex.split(expected["argv"])
    numbers = {"lines": "line", "columns": "column"}
    for key, attribute in numbers.items():
        if key in expected:
            assert [getattr(token, attribute) for token in launch.argv] == [
                int(n) for n in str(expected[key]).split()
            ], key
    if "raws" in expected:
        assert [token.raw for token in launch.argv] == shlex.split(expected["raws"])
    if "leads" in expected:
        assert [token.lead for token in launch.argv if not token.known] == expected["leads"].split()
    if "by_default" in expected:
        assert [token.text for token in launch.argv if token.by_default] == str(expected["by_default"]).split()
    if "lost" in expected:
        assert [shown(token) for token in launch.lost] == shlex.split(expected["lost"])
    if "env" in expected:
        assert env_of(launch) == [item for item in expected["env"].split(";") if item]
    for name, values in expected.get("alternatives", {}).items():
        flag = launch.flag(name)
        assert flag is not None
        assert list(flag.values[0].alternatives) == values.split()
    found = facts(launch)
    for key in found.keys() & expected.keys():
        assert found[key] == expected[key], key


@pytest.mark.parametrize("case", load(), ids=lambda case: case["name"].replace(" ", "-"))
def test_case(case: dict[str, Any]) -> None:
    parsed = parse_text(case["text"], name=case.get("file", "<text>"), form=case.get("form"))
    problems = case.get("problems", [])
    assert len(parsed.problems) == len(problems), [str(problem) for problem in parsed.problems]
    for problem, expected in zip(parsed.problems, problems, strict=True):
        line, words = expected.split(" ", 1)
        assert problem.line == int(line)
        assert words in problem.message
    if "launches" in case:
        assert len(parsed.launches) == len(case["launches"]), [
            [shown(token) for token in launch.argv] for launch in parsed.launches
        ]
        for launch, expected in zip(parsed.launches, case["launches"], strict=True):
            check(launch, expected)
    for launch in parsed.launches:
        for token in (*launch.argv, *launch.program, *launch.lost):
            assert parsed.text[token.start : token.end] == token.raw
        for item in launch.env:
            assert parsed.text[item.value.start : item.value.end] == item.value.raw
    if "suppressions" in case:
        found = [f"{item.line} {','.join(item.codes)} {item.reason}" for item in parsed.suppressions]
        assert found == case["suppressions"]


def test_there_are_at_least_120_cases() -> None:
    cases = load()
    assert len(cases) >= 120
    assert len({case["name"] for case in cases}) == len(cases)
