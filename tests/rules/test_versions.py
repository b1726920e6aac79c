"""What a stated engine version may mean: releases, dates, images, loose words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.rules.versions import span_of


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("0.5.12.post1", "0.5.12.post1", "0.5.12.post1"),
        ("v0.5.16-cu130", "0.5.16", "0.5.16"),
        ("lmsysorg/sglang:v0.5.12-cu130 (flashinfer 0.6.11.post1); v0.5.11 works", "0.5.12", "0.5.12"),
        ("sglang v0.5.15.post1, flashinfer 0.6.12", "0.5.15.post1", "0.5.15.post1"),
        ("sglang 0.5.4/0.5.5 (0.5.3 ok)", "0.5.4", "0.5.5"),
        ("lmsysorg/sglang v0.5.8-v0.5.12 cu130", "0.5.8", "0.5.12"),
        ("2026-05", "0.5.10.post1", "0.5.13"),
        ("sglang Mar 2026", "0.5.9", "0.5.10"),
        ("lmsysorg/sglang:nightly-dev-cu13-20260523", "0.5.12", "0.5.13"),
        ("sglang 0.0.0.dev1+g6c7498113 (2026-08-07)", "0.5.16", "0.5.17"),
        ("lmsysorg/sglang 2026 (not v0.5.12 on B300)", "0.5.6.post2", "0.5.23"),
        ("0.5.99", "0.5.99", "0.5.99"),
    ],
)
def test_span(text: str, first: str, last: str) -> None:
    """A version named as working, negated or of another package must not be taken for the engine's."""
    releases = span_of(text).releases
    assert (releases[0], releases[-1]) == (first, last)


@pytest.mark.parametrize("text", [None, "", "latest", "lmsysorg/sglang:dev", "sglang"])
def test_unstated(text: str | None) -> None:
    span = span_of(text)
    assert not span.stated
    assert span.within("<0.5.11") is None
    assert span.within("") is True


def test_within_is_three_valued() -> None:
    span = span_of("2026-05")
    assert span.within(">=0.5.10") is True
    assert span.within("<0.5.9") is False
    assert span.within("<0.5.12") is None


@given(st.text(max_size=60))
def test_any_text_gives_a_span(text: str) -> None:
    span = span_of(text)
    assert span.stated == bool(span.releases)
    assert span.within(">=0.1") in (True, None, False)
