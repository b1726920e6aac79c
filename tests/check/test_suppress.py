"""Setting findings aside: inline, by project, by baseline; never in silence, never without a reason."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.review import Settings, baseline_of, check, read_baseline, read_settings

LINE = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\\n  --enable_metrics\n"


def codes(text: str, settings: Settings | None = None, baseline: frozenset[str] = frozenset()) -> list[str]:
    report = check(text, engine_version="0.5.16", settings=settings, baseline=baseline)
    return [finding.code for finding in report.findings]


def test_a_comment_above_covers_the_whole_launch() -> None:
    """Inside a continued command there is no place for a comment."""
    report = check(f"# plan-config: ignore=FLG002 our fork takes it\n{LINE}", engine_version="0.5.16")
    assert not report.findings
    assert [(one.code, one.reason, one.by) for one in report.set_aside] == [("FLG002", "our fork takes it", "inline")]


@pytest.mark.parametrize("name", ["FLG002", "flg002", "underscore-flag"])
def test_code_or_slug(name: str) -> None:
    assert codes(f"# plan-config: ignore={name} reason\n{LINE}") == []


def test_without_a_reason_it_does_not_apply() -> None:
    report = check(f"# plan-config: ignore=FLG002\n{LINE}", engine_version="0.5.16")
    assert [finding.code for finding in report.findings] == ["FLG002"]
    assert any("no reason" in line for line in report.skipped)


def test_a_suppression_that_matches_nothing_is_named() -> None:
    report = check(f"# plan-config: ignore=SPC001 old\n{LINE}", engine_version="0.5.16")
    assert any("matches no finding" in line for line in report.skipped)


def test_project_settings() -> None:
    settings = read_settings(
        '[tool.plan-config]\nhw = "b300"\n[tool.plan-config.ignore]\nFLG002 = "fork"\n', name="pyproject.toml"
    )
    assert settings.options == {"hw": "b300"}
    assert codes(LINE, settings) == []
    by_file = read_settings('[tool.plan-config.per-file-ignore."<*>"]\nFLG002 = "fork"\n', name="pyproject.toml")
    assert codes(LINE, by_file) == []


@pytest.mark.parametrize(
    "text",
    [
        "[tool.plan-config\n",
        '[tool.plan-config]\nignore = ["FLG002"]\n',
        '[tool.plan-config.ignore]\nFLG002 = ""\n',
        "[tool.plan-config]\nignroe = 1\n",
    ],
)
def test_bad_settings_are_refused(text: str) -> None:
    with pytest.raises(InputError) as fault:
        read_settings(text, name="pyproject.toml")
    assert "pyproject.toml" in str(fault.value)


def test_baseline_survives_moved_lines_and_lets_new_findings_through() -> None:
    first = check(LINE, engine_version="0.5.16")
    known = read_baseline(baseline_of(first.findings), name="baseline.json")
    assert codes(f"\n\n{LINE}", baseline=known) == []
    assert codes(LINE.replace("--enable_metrics", "--enable_metrics --enable_lora"), baseline=known) == ["FLG002"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 2, "findings": []}', '{"schema_version": 1}'])
def test_bad_baselines_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_baseline(text, name="baseline.json")
