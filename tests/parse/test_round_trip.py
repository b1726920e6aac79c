"""Words that are written in a form come back the same and from where they were put; and edits change what they say."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.parse import ParsedFile, parse_text
from planner.parse.detect import ALIASES
from planner.parse.edit import RemoveFlag, SetFlag, apply_edits, unified_diff
from tests.parse.parse_inputs import mutated, seeds
from tests.parse.rendering import RENDERERS, Rendered, commands

FORMS = sorted(RENDERERS)
VALUES = ["1", "0.85", "fp8_e4m3", "a b", "it's", '{"a": [1, "b"]}', "x=y", "$X", "a#b", "C:\\d"]


def read(rendered: Rendered, form: str) -> ParsedFile:
    return parse_text(rendered.text, name=rendered.name, form="argv" if form == "argv" else None)


@pytest.mark.parametrize("form", FORMS)
@given(words=commands(), seed=st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_words_come_back_from_where_they_were_put(form: str, words: list[str], seed: int) -> None:
    rendered = RENDERERS[form](random.Random(seed), words)
    parsed = read(rendered, form)
    assert parsed.problems == ()
    assert len(parsed.launches) == 1, rendered.text
    launch = parsed.launches[0]
    assert [token.text for token in launch.argv] == words
    assert [(token.start, token.end) for token in launch.argv] == rendered.spans
    lines = rendered.text.split("\n")
    for token in launch.argv:
        assert rendered.text[token.start : token.end] == token.raw
        assert lines[token.line - 1][token.column - 1 :].startswith(token.raw.split("\n")[0])
    for flag in launch.flags:
        for value in flag.values:
            assert rendered.text[value.start : value.end] == value.raw
    assert launch.notes == ()


@pytest.mark.parametrize("form", FORMS)
@given(words=commands(), seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=60, deadline=None)
def test_an_edit_changes_what_it_says_and_nothing_else(
    form: str, words: list[str], seed: int, data: st.DataObject
) -> None:
    rng = random.Random(seed)
    rendered = RENDERERS[form](rng, words)
    parsed = read(rendered, form)
    flags = parsed.launches[0].flags
    same = [SetFlag(flag.name, tuple(value.text or "" for value in flag.values)) for flag in flags]
    assert apply_edits(parsed, 0, same) == parsed.text
    flag = data.draw(st.sampled_from(flags))
    value = data.draw(
        st.sampled_from(["1", "0.85", "fp8_e4m3", "a b", "it's", '{"a": [1, "b"]}', "x=y", "$X", "a#b", "C:\\d"])
    )
    if form.startswith("kubernetes"):
        value = value.replace("$", "")
    wanted = {item.name: tuple(token.text for token in item.values) for item in flags}
    for edit, change in (
        (SetFlag(flag.name, (value,)), {flag.name: (value,)}),
        (SetFlag("--new-option", (value,)), {"--new-option": (value,)}),
        (SetFlag("--new-switch"), {"--new-switch": ()}),
        (RemoveFlag(flag.name), None),
    ):
        if change is None and len(flags) == 1:
            continue
        try:
            text = apply_edits(parsed, 0, [edit])
        except InputError:
            # A quotation inside another one may have no way to write a word: then nothing is written.
            assert form in ("bash -c", "python", "kubernetes script")
            assert not value.isalnum()
            continue
        again = parse_text(text, name=rendered.name, form="argv" if form == "argv" else None)
        found = {item.name: tuple(token.text for token in item.values) for item in again.launches[0].flags}
        assert found == (wanted | change if change is not None else {k: v for k, v in wanted.items() if k != flag.name})
        assert apply_edits(again, 0, [edit]) == text
        assert bool(unified_diff(parsed.text, text, name="a")) == (text != parsed.text)


def test_the_last_word_goes_and_the_comment_before_it_stays() -> None:
    """A comment inside a continued unit line: without care the next setting became part of the command."""
    text = (
        "[Service]\nExecStart=/usr/bin/python3 -m sglang.launch_server --tp 2 \\\n# why\n  --log-requests\nRestart=no\n"
    )
    new = apply_edits(parse_text(text, name="a.service"), 0, [RemoveFlag("--log-requests")])
    assert new == "[Service]\nExecStart=/usr/bin/python3 -m sglang.launch_server --tp 2\n# why\nRestart=no\n"


def test_random_text_never_raises() -> None:
    """The long run is ``benchmarks/fuzz_parse.py``."""
    rng = random.Random(20)
    texts = seeds()
    forms = [None, *sorted(ALIASES)]
    for _ in range(4000):
        text = mutated(rng, texts)
        parsed = parse_text(text, name="fuzz", form=rng.choice(forms) if rng.random() < 0.5 else None)
        assert parsed.launches or parsed.problems
        for launch in parsed.launches:
            for token in launch.argv:
                assert parsed.text[token.start : token.end] == token.raw


@given(text=st.text(max_size=300), form=st.sampled_from([None, *sorted(ALIASES)]))
@settings(max_examples=300, deadline=None)
def test_any_text_is_answered(text: str, form: str | None) -> None:
    parsed = parse_text(text, name="any", form=form)
    assert parsed.launches or parsed.problems
    assert all(problem.line is not None and problem.message for problem in parsed.problems)
