"""Other traffic: factors against the tables they come from, and what they do to a fit."""

from __future__ import annotations

import itertools
import tomllib

import numpy as np
import pytest

from planner.data.files import read_text
from planner.errors import InputError
from planner.estimate.acceptance import TreeAcceptance, context_factor, fit_acceptance, temperature_factor
from planner.estimate.acceptance.conditions import CONTEXT_EXPONENT, DOMAIN_FACTOR, TEMPERATURE_FACTOR

DATA = tomllib.loads(read_text("acceptance/curves.toml"))
DATASETS = {
    "code": ("HumanEval", "MBPP", "LiveCodeBench"),
    "chat": ("MT-Bench", "Alpaca"),
    "math": ("GSM8K", "MATH-500", "AIME 2024", "AIME 2025"),
}


def table1() -> dict[tuple[float, str, str], float]:
    return {(r["temperature"], r["dataset"], r["target"]): r["tree_accept_len"] for r in DATA["ddtree_table1"]}


def kimi() -> TreeAcceptance:
    fit = fit_acceptance(
        [{"budget": 8, "topk": 4, "accept_len": 4.48, "domain": "code", "temperature": 0.0, "context_tok": 1024}], 8
    )
    assert isinstance(fit, TreeAcceptance)
    return fit


def test_temperature_factor_is_that_of_table_1() -> None:
    cells = table1()
    ratio = [(cells[1.0, d, t] - 1) / (tau - 1) for (temperature, d, t), tau in cells.items() if temperature == 0.0]
    assert len(ratio) == 30
    assert pytest.approx((min(ratio), np.mean(ratio), max(ratio)), abs=0.006) == TEMPERATURE_FACTOR


@pytest.mark.parametrize(("old", "new"), list(DOMAIN_FACTOR))
def test_domain_factor_is_that_of_table_1(old: str, new: str) -> None:
    cells = table1()
    targets = sorted({target for _, _, target in cells})
    ratio = [
        (cells[0.0, b, target] - 1) / (cells[0.0, a, target] - 1)
        for target in targets
        for a, b in itertools.product(DATASETS[old], DATASETS[new])
    ]
    assert pytest.approx(np.quantile(ratio, [0.05, 0.5, 0.95]), abs=0.01) == DOMAIN_FACTOR[old, new]


def test_context_exponent_is_that_of_table_4() -> None:
    base = {(r["dataset"], r["context_tok"]): r["accept_len"] for r in DATA["context"] if r["drafter"] == "base"}
    exponent = [
        -np.log((tau - 1) / (base[dataset, 4096] - 1)) / np.log(context / 4096)
        for (dataset, context), tau in base.items()
        if context > 4096
    ]
    assert len(exponent) == 7
    assert pytest.approx((min(exponent), np.mean(exponent), max(exponent)), abs=0.01) == CONTEXT_EXPONENT


def test_no_change_leaves_the_fit_alone() -> None:
    fit = kimi()
    assert fit.at() is fit
    assert fit.at(domain="code", temperature=0.0, context_tok=2048) is fit
    assert fit.at(domain="unknown") is fit


def test_temperature_widens_downward() -> None:
    """T=1 averages 0.90 of T=0 and reaches 0.71: the interval must open below."""
    greedy, sampled = kimi().predict(8), kimi().at(temperature=1.0).predict(8)
    assert 0.85 < sampled.value / greedy.value < 0.95
    assert sampled.value - sampled.low > 1.5 * (greedy.value - greedy.low)
    assert sampled.low / greedy.value < 0.78
    assert not sampled.extrapolated
    assert kimi().at(temperature=1.5).predict(8).extrapolated


def test_chat_is_shorter_than_code() -> None:
    code, chat = kimi().predict(8), kimi().at(domain="chat").predict(8)
    assert chat.high < code.low + 0.5
    assert chat.value < code.value
    assert "from code to chat" in (chat.note or "")


def test_unknown_traffic_is_not_carried_over() -> None:
    fit = fit_acceptance([(8, 4.48)], 8)
    moved = fit.at(domain="chat").predict(8)
    assert moved.extrapolated
    assert moved.value == pytest.approx(fit.predict(8).value)


def test_long_context() -> None:
    """Accept length falls beyond the training length; an unknown one is marked and opens upward to no change."""
    fit = kimi()
    known = fit.at(context_tok=16384, train_context_tok=4096).predict(8)
    assumed = fit.at(context_tok=16384).predict(8)
    assert known.value < fit.predict(8).value
    assert not known.extrapolated
    assert assumed.extrapolated
    assert assumed.high > known.high
    assert fit.at(context_tok=16384, train_context_tok=65536) is fit


def test_factors_move_one_way() -> None:
    assert context_factor(1000, 4096) == (1.0, 1.0, 1.0)
    assert context_factor(32768, 4096) < context_factor(8192, 4096)
    assert temperature_factor(0.0) == (1.0, 1.0, 1.0)
    assert temperature_factor(1.0)[1] < temperature_factor(0.5)[1]


def test_shifted_fits_stay_capped_and_sample() -> None:
    fit = fit_acceptance([{"budget": 8, "accept_len": 5.5, "domain": "chat"}], 8).at(domain="code")
    answer = fit.predict_band(np.arange(0, 65))
    assert (answer.value <= 8).all()
    assert (np.diff(answer.value) >= 0).all()
    assert fit.sample([4, 8], 64, 0).max() <= 8
    assert fit.sample([4, 8], 64, 0).std(axis=0).min() > 0
    chain = fit_acceptance([(3, 2.9)], 8, kind="chain").at(temperature=1.0)
    assert chain.predict(3).value < 2.9
    assert chain.sample([3], 64, 0).shape == (64, 1)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"domain": "cod"}, "did you mean code"),
        ({"temperature": -1.0}, "from 0 up"),
        ({"context_tok": 0}, "at least 1"),
    ],
)
def test_bad_conditions(conditions: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        kimi().at(**conditions)  # type: ignore[arg-type]
