"""Secrets do not reach a report, a ledger or a terminal; counts and names of tokens stay readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.diagnose import diagnose_lines, redact, redact_argv

SECRET = "s3cr3tV4lue0123456789"
HIDDEN_IN = (
    "HF_TOKEN={}",
    "export HUGGING_FACE_HUB_TOKEN='{}'",
    "python -m sglang.launch_server --api-key {} --tp 8",
    "python -m sglang.launch_server --api-key={}",
    "--admin-api-key '{}'",
    "Authorization: Bearer {}",
    '{{"Authorization": "Bearer {}"}}',
    "authorization: Basic {}",
    "server_args={{'model_path': 'm', 'api_key': '{}', 'port': 30000}}",
    "ServerArgs(model_path='m', api_key='{}', port=30000)",
    "GET https://user:{}@example.org/models",
    "https://example.org/x?token={}&n=1",
    "AWS_SECRET_ACCESS_KEY={}",
    "OPENAI_API_KEY: {}",
    "password={}",
    '"client_secret": "{}"',
    "X-Api-Key: {}",
    "hf_{}",
    "sk-{}",
)
UNTOUCHED = (
    "[2026-05-28 11:00:05 TP0] Prefill batch, #new-seq: 1, #new-token: 16, #cached-token: 0, token usage: 0.31",
    "[2026-05-28 11:00:05 TP0] Decode batch, #running-req: 1, #token: 353, token usage: 0.05, accept len: 4.41",
    "max_total_num_tokens=4096, chunked_prefill_size=4096, max_running_requests=4",
    "'tokenizer_path': 'models/tiny', 'api_key': None, 'admin_api_key': None",
    "ValueError: think_end_token '</think>' could not be encoded by the tokenizer.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB",
    "KeyError: 'model_type'",
    "HTTP://10.0.0.1:30000/health 200",
)


@pytest.mark.parametrize("form", HIDDEN_IN)
def test_secrets_are_hidden(form: str) -> None:
    line = form.format(SECRET)
    assert SECRET not in redact(line)
    assert "***" in redact(line)


@pytest.mark.parametrize("line", UNTOUCHED)
def test_plain_lines_are_untouched(line: str) -> None:
    assert redact(line) == line


@pytest.mark.parametrize("form", HIDDEN_IN)
def test_redacting_twice_changes_nothing(form: str) -> None:
    once = redact(form.format(SECRET))
    assert redact(once) == once


@given(st.text(max_size=300))
def test_any_text_is_redacted_without_error(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


def test_argv_values_behind_a_secret_flag_are_hidden() -> None:
    argv = ("sglang", "serve", "--api-key", SECRET, "--tp", "8", f"--admin-api-key={SECRET}", "--trust-remote-code")
    shown = redact_argv(argv)
    assert SECRET not in " ".join(shown)
    assert shown[:3] == argv[:3]
    assert shown[4:6] == argv[4:6]
    assert shown[-1] == "--trust-remote-code"


def test_a_diagnosis_shows_no_secret() -> None:
    """The line that shows a cause may hold the command line, and the facts hold the server's arguments."""
    diagnosis = diagnose_lines(
        [
            f"[2026-05-28 10:59:00] server_args={{'model_path': 'm', 'api_key': '{SECRET}', 'tp_size': 8}}",
            f"launch_server.py: error: unrecognized arguments: --api_key {SECRET} --hf-token {SECRET}",
        ]
    )
    assert diagnosis.cause == "arg-parser"
    assert SECRET not in str(diagnosis.to_json()).replace(f"--api_key {SECRET}", "")
    assert diagnosis.facts.args["api_key"] == "***"
