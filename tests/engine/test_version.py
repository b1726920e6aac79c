"""A release, an image tag or a month: which table and rules stand for it, and when findings must soften."""

from __future__ import annotations

import pytest

from planner.engine.version import NEWEST_RULES, parse_engine_version
from planner.errors import InputError


@pytest.mark.parametrize(
    ("text", "release", "table", "rules", "exact"),
    [
        ("0.5.23", "0.5.23", "0.5.23", "0.5.23", True),
        ("v0.5.12.post1", "0.5.12.post1", "0.5.12.post1", "0.5.12.post1", True),
        ("lmsysorg/sglang:v0.5.16-cu130", "0.5.16", "0.5.16", "0.5.12.post1", False),
        ("registry.local:5000/sglang/sglang:v0.5.23-cu129-amd64@sha256:ab", "0.5.23", "0.5.23", "0.5.23", True),
        ("0.5.14", "0.5.14", "0.5.13", "0.5.12.post1", False),
        ("0.5.18", "0.5.18", "0.5.16", "0.5.12.post1", False),
        ("0.5.24", "0.5.24", "0.5.23", "0.5.23", False),
        ("0.4.6", "0.4.6", "0.5.11", "0.5.12.post1", False),
        ("lmsysorg/sglang:nightly-dev-20260528-1a2b3c4d", None, "0.5.12.post1", "0.5.12.post1", False),
        ("latest", None, "0.5.23", "0.5.23", False),
        (None, None, "0.5.23", "0.5.23", False),
        ("2026-05", "0.5.12.post1", "0.5.12.post1", "0.5.12.post1", False),
    ],
)
def test_meaning(text: str | None, release: str | None, table: str, rules: str, exact: bool) -> None:
    version = parse_engine_version(text)
    assert (version.release, version.table, version.rules, version.exact) == (release, table, rules, exact)
    assert exact or version.notes
    assert version.known is (text is not None)


def test_a_version_between_two_tables_says_which_stands_for_it() -> None:
    notes = " ".join(parse_engine_version("0.5.14").notes)
    assert "no flag table for 0.5.14" in notes
    assert "0.5.13" in notes
    assert "0.5.12.post1" in notes


def test_unstated_is_the_newest() -> None:
    assert parse_engine_version(None).rules == NEWEST_RULES
    assert parse_engine_version("  ") == parse_engine_version(None)


@pytest.mark.parametrize("text", ["banana", "0.6.x.y", "12.1", "2019-01", "1999-13", "0.0.1"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(InputError):
        parse_engine_version(text)


def test_order() -> None:
    assert parse_engine_version("0.5.16").at_least("0.5.12.post1")
    assert not parse_engine_version("0.5.12").at_least("0.5.12.post1")
