"""Limits over one launch agree with limits over a table of candidates: one definition, two uses."""

from __future__ import annotations

import pytest

from planner.domain import Level
from planner.review import check

KIMI = (
    "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend triton --page-size 1 "
    "--speculative-algorithm DDTREE --speculative-draft-model-path drafts/Kimi-K2.6-DFlash "
    "--speculative-num-draft-tokens {q_len} --speculative-eagle-topk {topk} "
    "--max-running-requests {running} --cuda-graph-max-bs {running}\n"
)


def found(q_len: int, topk: int, running: int, extra: str = "") -> dict[str, Level]:
    text = KIMI.format(q_len=q_len, topk=topk, running=running).rstrip() + f" {extra}\n"
    report = check(text, hw="b300", gpus=8, model="kimi-k2.6", engine_version="2026-05", dialect="field")
    return {finding.code: finding.level for finding in report.findings if finding.code.startswith("B300")}


@pytest.mark.parametrize(
    ("note", "q_len", "topk", "running", "code"),
    [
        ("FN-04", 9, 4, 256, "B300-MLA-VERIFY-ROWS"),
        ("FN-05", 17, 8, 128, "B300-MLA-VERIFY-ROWS"),
        ("FN-06", 17, 8, 64, "B300-GRAPH-Q-LEN"),
        ("FN-07", 33, 8, 32, "B300-GRAPH-Q-LEN"),
        ("FN-09", 13, 6, 64, "B300-GRAPH-Q-LEN"),
    ],
)
def test_field_failures_are_errors(note: str, q_len: int, topk: int, running: int, code: str) -> None:
    assert found(q_len, topk, running)[code] is Level.ERROR, note


def test_field_successes_are_silent() -> None:
    """FN-01 and FN-03: 128 requests at q_len 9 ran well."""
    assert found(9, 4, 128) == {}


def test_the_untested_interval_is_softer() -> None:
    """Between 1152 (good) and 2176 (bad) nothing was tried."""
    assert found(9, 4, 160)["B300-MLA-VERIFY-ROWS"] is Level.WARNING


def test_eager_lifts_the_graph_limit_only() -> None:
    """FN-08: 17 rows a request ran right without graphs."""
    assert "B300-GRAPH-Q-LEN" not in found(17, 8, 8, "--disable-cuda-graph")


def test_another_machine_is_silent() -> None:
    """A limit never belongs to Blackwell as a whole: 1536 rows run well on B200."""
    report = check(
        KIMI.format(q_len=9, topk=4, running=256), hw="b200", gpus=8, engine_version="2026-05", dialect="field"
    )
    assert not [finding for finding in report.findings if finding.code.startswith("B300")]
