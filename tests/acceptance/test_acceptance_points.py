"""Bad input: each fault gives a clear message, all at once."""

from __future__ import annotations

import pytest

from planner.domain import AcceptPoint, Source, SourceKind
from planner.errors import DomainError, InputError
from planner.estimate.acceptance import TreeAcceptance, fit_acceptance

BAD_POINTS: list[tuple[str, list[object], dict[str, object], str]] = [
    ("none", [], {}, "at least one measured"),
    ("above the cap", [(8, 9.5)], {"block_size": 8}, "above its cap of 8"),
    ("above the node count", [(2, 3.5)], {}, "above its cap of 3"),
    ("nothing accepted (FN-07)", [(32, 1.0)], {}, "no drafted token was accepted"),
    ("bonus not counted", [(8, 0.8)], {}, "bonus_counted=False"),
    ("budget zero", [(0, 1.5)], {}, "budget excludes the root"),
    ("budget broken", [(8.5, 4.0)], {}, "whole number"),
    ("text", [("8", 4.0)], {}, "whole number"),
    ("nan", [(8, float("nan"))], {}, "must be a number"),
    ("bool", [(True, 1.5)], {}, "whole number"),
    ("too long a tuple", [(8, 4.0, 100, 3)], {}, "a point is"),
    ("typo", [{"budget": 8, "accept_length": 4.0}], {}, "did you mean accept_len"),
    ("missing", [{"budget": 8}], {}, "accept_len is missing"),
    ("rounds", [(8, 4.0, 0)], {}, "at least 1"),
    ("duplicate", [(8, 4.0), (8, 4.0)], {}, "same row"),
    ("contradiction", [(8, 4.0), (8, 5.4)], {}, "contradict"),
    ("falling", [(8, 5.0), (32, 3.0)], {}, "contradict"),
    (
        "bonus counting mixed",
        [
            {"budget": 8, "accept_len": 3.5, "bonus_counted": False},
            {"budget": 16, "accept_len": 5.0, "bonus_counted": True},
        ],
        {},
        "bonus token",
    ),
    (
        "bonus counting not stated in one",
        [{"budget": 8, "accept_len": 3.5, "bonus_counted": False}, (16, 5.0)],
        {},
        "do not say",
    ),
    (
        "traffic mixed",
        [{"budget": 8, "accept_len": 4.5, "domain": "code"}, {"budget": 16, "accept_len": 4.9, "domain": "chat"}],
        {},
        "belongs to one traffic",
    ),
    (
        "temperature mixed",
        [{"budget": 8, "accept_len": 4.5, "temperature": 0}, {"budget": 16, "accept_len": 4.9, "temperature": 1}],
        {},
        "different temperature",
    ),
    ("block size", [(8, 4.0)], {"block_size": 1}, "block_size"),
    ("kind", [(8, 4.0)], {"kind": "chains"}, "did you mean chain"),
    ("topk", [(8, 4.0)], {"topk": 0}, "topk"),
    ("shape", [(8, 4.0)], {"tree_shape": "spin"}, "did you mean spine"),
    ("eagle without topk", [(8, 4.0)], {"tree_shape": "eagle"}, "needs its topk"),
    ("tree point in a chain", [{"budget": 3, "accept_len": 2.0, "kind": "tree"}], {"kind": "chain"}, "tree point"),
    ("chain contradiction", [(2, 2.9), (4, 2.0)], {"kind": "chain"}, "contradict"),
]


@pytest.mark.parametrize(("points", "options", "message"), [c[1:] for c in BAD_POINTS], ids=[c[0] for c in BAD_POINTS])
def test_bad_input(points: list[object], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit_acceptance(points, **options)  # type: ignore[arg-type]


def test_all_faults_at_once() -> None:
    with pytest.raises(InputError) as raised:
        fit_acceptance([(0, 2.0), (8, 99.0), (4, 3.0), (4, 3.0)], 8)
    assert len(raised.value.problems) == 3
    assert raised.value.problems[0].field == "points[0].budget"


def test_budget_beyond_the_model() -> None:
    with pytest.raises(DomainError, match="above 1024"):
        fit_acceptance([(2048, 9.0)])


def test_a_count_without_the_bonus_token_is_converted() -> None:
    without = fit_acceptance([{"budget": 8, "accept_len": 3.48, "bonus_counted": False}], 8)
    assert isinstance(without, TreeAcceptance)
    assert without.points[0].accept_len == pytest.approx(4.48)
    assert without.predict(8).value == pytest.approx(4.48, abs=0.05)


def test_profile_points_and_tuples_agree() -> None:
    source = Source(field="accept_len", kind=SourceKind.MEASURED, ref="field note FN-01")
    point = AcceptPoint(
        target="kimi-k2.6", kind="tree", budget=8, topk=4, accept_len=4.48, domain="code", source=source
    )
    ours = fit_acceptance([point], 8).predict(16)
    plain = fit_acceptance([(8, 4.48)], 8, topk=4).predict(16)
    assert ours.value == plain.value


def test_two_close_runs_at_one_budget_pool() -> None:
    """Repeats are evidence, not a fault: they narrow the interval."""
    one = fit_acceptance([(8, 4.4)], 8).predict(8)
    two = fit_acceptance([(8, 4.4), (8, 4.5)], 8).predict(8)
    assert two.high - two.low < one.high - one.low


def test_scatter_widens_the_interval() -> None:
    calm = fit_acceptance([(16, 6.0), (32, 6.6), (64, 7.2)]).predict(128)
    wild = fit_acceptance([(16, 6.3), (32, 6.1), (64, 7.6)]).predict(128)
    assert wild.high - wild.low > calm.high - calm.low
