"""Every answer recorded from the real engine still is our answer: effective values field by field, errors by type.

The cases are data (cases/VERSION.json, recorded by tests/contract/record_cases.py); each one that once differed stays.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.data import load_hardware
from tests.engine.expected import (
    cases,
    concrete,
    config,
    differences,
    ours,
    read_argv,
    record,
    recorded_answer,
    resolve,
)

N_FIELDS = {"0.5.12.post1": 381, "0.5.23": 544}
"""Fields of the engine's record that are compared."""
VERSIONS = tuple(N_FIELDS)


def _all() -> list[Any]:
    return [
        pytest.param(version, case, id=f"{version}-{case['hw']}-{case['name']}")
        for version in VERSIONS
        for case in cases(version)
    ]


@pytest.mark.parametrize(("version", "case"), _all())
def test_recorded_answer(version: str, case: dict[str, Any]) -> None:
    assert differences(version, case["hw"], concrete(case["argv"]), recorded_answer(version, case)) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_record_covers_every_field_of_the_version(version: str) -> None:
    """A case that compares few fields would pass for nothing."""
    answered = [case for case in cases(version) if "error" not in case]
    assert len(answered) > 200
    assert {case["n_fields"] for case in answered} == {N_FIELDS[version]}
    assert len([case for case in cases(version) if "error" in case]) > 80
    assert record(version)["engine_version"] == version


@pytest.mark.parametrize("version", VERSIONS)
def test_every_change_has_a_decision_with_reason_and_source(version: str) -> None:
    """What the engine changes is told: field, before, after, why, and where in its source."""
    for case in cases(version)[::7]:
        argv = concrete(case["argv"])
        effective, error = ours(version, case["hw"], argv)
        if error is not None or effective is None:
            continue
        launch = read_argv(argv, version=version).launch
        found = resolve(
            launch,
            hardware=load_hardware(case["hw"]),
            engine_version=version,
            model_config=config(launch.model_path),
            draft_config=config(launch.speculative_draft_model_path),
        )
        fields = [decision.field for decision in found.decisions]
        assert len(fields) == len(set(fields))
        for decision in found.decisions:
            assert decision.because
            assert decision.source.startswith(f"{version} ")
            assert decision.before != decision.after
            assert found.effective[decision.field] == decision.after or isinstance(decision.after, (str, tuple))
