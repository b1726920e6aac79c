"""docs/engine.md and docs/dialects.md say what the tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.engine.dialects import DIALECTS, Dialect, DraftTokens
from planner.engine.flags import flag_table, flag_versions
from planner.engine.version import RULE_SETS
from tests.engine.test_flag_tables import COUNTS

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEANING = {
    DraftTokens.NODES_WITH_ROOT: "nodes with the root (budget + 1)",
    DraftTokens.BLOCK_SIZE: "block size of the drafter",
    DraftTokens.FREE: "not tied",
    DraftTokens.NONE: "no tree",
}


def _word(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[value]


def row(dialect: Dialect) -> str:
    """One line of the table of dialects."""
    flags = ", ".join(f"`{flag.name}`{'' if flag.known else ' (assumed)'}" for flag in dialect.flags) or "none"
    needs = [f"page size {dialect.page_size}"] if dialect.page_size is not None else []
    if dialect.tree_attention_backend is not None:
        needs.append(f"{dialect.tree_attention_backend} for a full tree")
    needs += ["greedy"] if dialect.greedy_only else []
    algorithm = f"`{dialect.algorithm}`" if dialect.algorithm else "none"
    cells = [
        f"`{dialect.id}`",
        algorithm,
        flags,
        MEANING[dialect.num_draft_tokens],
        ", ".join(needs) or "none known",
        _word(dialect.disables_overlap),
        _word(dialect.cuda_graphs),
        dialect.base_version,
    ]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("name", DIALECTS)
def test_the_page_lists_every_dialect_as_it_is(name: str) -> None:
    text = (DOCS / "dialects.md").read_text(encoding="utf-8")
    assert row(DIALECTS[name]) in text
    for assumed in DIALECTS[name].assumed:
        assert assumed in text
    for evidence in DIALECTS[name].evidence:
        assert evidence in text


def test_the_page_lists_every_table() -> None:
    text = (DOCS / "engine.md").read_text(encoding="utf-8")
    for version in flag_versions():
        if version in COUNTS:
            rules = "compared" if version in RULE_SETS else "the older of its neighbours"
            assert f"| {version} | {flag_table(version).released} | {COUNTS[version]} | {rules} |" in text


def test_the_agreement_is_filled_in() -> None:
    text = (DOCS / "engine.md").read_text(encoding="utf-8")
    section = text.split("<!-- agreement: start -->")[1].split("<!-- agreement: end -->")[0]
    for version in RULE_SETS:
        assert f"| {version} | generated |" in section
