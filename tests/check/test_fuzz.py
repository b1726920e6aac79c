"""Any text gives a report and never a traceback; nothing in a checked file is run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.domain import Level
from planner.engine.flags import flag_table
from planner.review import check
from planner.rules import RULES

FLAGS = sorted(flag_table("0.5.16").by_name)
VALUES = st.one_of(
    st.sampled_from(["1", "0", "-1", "8", "3", "0.9", "1e9", "", "$TP", "${X:-4}", "fp8", "nvfp4", "EAGLE", "DFLASH"]),
    st.sampled_from(["DDTREE", "trtllm_mla", "triton", "auto", "{", "'", "true", "2026", "--", "é", "\u2013tp"]),
    st.text(max_size=8),
)
WORDS = st.lists(st.one_of(st.sampled_from(FLAGS), VALUES), max_size=14)
MACHINES = st.sampled_from([None, "b300", "h200", "rtx_pro_6000", "a100", "mi355x"])
VERSIONS = st.sampled_from([None, "0.5.12.post1", "0.5.16", "0.5.23", "2026-05", "latest", "0.4.6", "nonsense"])
MODELS = st.sampled_from([None, "kimi-k2.6", "deepseek-r1", "Qwen3.5-397B-A17B-NVFP4", "gpt-oss-20b", "unknown"])


@given(WORDS, MACHINES, VERSIONS, MODELS, st.integers(1, 16))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_words(words: list[str], hw: str | None, version: str | None, model: str | None, gpus: int) -> None:
    text = "python3 -m sglang.launch_server --model-path x " + " ".join(words)
    report = check(text, form="bash", hw=hw, engine_version=version, model=model, gpus=gpus)
    assert report.exit_code() in (0, 1, 2)
    for finding in report.findings:
        assert finding.line is not None
        assert finding.line >= 1
        assert finding.message


@given(
    st.text(max_size=200), st.sampled_from(["bash", "kubernetes", "compose", "dockerfile", "systemd", "python", None])
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text(text: str, form: str | None) -> None:
    assert check(text + "\n", form=form).exit_code() in (0, 1, 2)


@given(st.sampled_from(RULES), st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_cut_examples(rule: object, data: st.DataObject) -> None:
    """Real launches with a piece missing: what is left of a file in an editor."""
    text = rule.bad.text  # type: ignore[attr-defined]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    check(text[:start] + text[end:] + "\n", **rule.bad.options())  # type: ignore[attr-defined]


def test_nothing_is_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    command = f"python3 -m sglang.launch_server --model-path $(touch {trap}) --tp `touch {trap}`"
    text = f"touch {trap}\nX=$(touch {trap})\n{command}\n"
    check(text, hw="b200")
    check(f"import os\nos.system('touch {trap}')\nargs = ['--model-path', 'x']\n", form="python")
    assert not trap.exists()


def test_checking_loads_no_heavy_library() -> None:
    """The review runs in every commit hook: it must not pay for solvers and plots."""
    import subprocess

    code = (
        "import sys; from planner.review import check; "
        "check('python3 -m sglang.launch_server --model-path x --tp 8', hw='h200', engine_version='0.5.16'); "
        "print([m for m in ('numpy', 'scipy', 'ortools', 'rich', 'pandas', 'matplotlib', 'httpx') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.informs], ids=lambda rule: rule.code)
def test_rules_that_inform_never_fail_a_build(rule: object) -> None:
    report = check(rule.bad.text, **rule.bad.options())  # type: ignore[attr-defined]
    mine = [finding for finding in report.findings if finding.code == rule.code]  # type: ignore[attr-defined]
    assert mine
    assert all(finding.level is Level.NOTE for finding in mine)
