# ruff: noqa: E501
"""Facts that the launcher and `workload --from-log` read from a log, whatever the cause."""

from __future__ import annotations

import pytest

from planner.diagnose import Diagnoser, Phase, diagnose_lines
from planner.diagnose.facts import ALL_UP_TO, MAX_POINTS, ONE_IN

ARGS = (
    "[2026-05-28 10:59:00] server_args={'model_path': 'm', 'tp_size': 8, 'dp_size': 1, 'speculative_algorithm': 'DFLASH', "
    "'speculative_num_draft_tokens': 8, 'max_running_requests': 128, 'mem_fraction_static': 0.88, 'nested': {'a': [1]}, "
    "'custom_sigquit_handler': None}"
)
OLD_ARGS = (
    "[2025-02-14 07:01:19] server_args=ServerArgs(model_path='/data/m', tp_size=2, mem_fraction_static=0.87, "
    "speculative_algorithm=None, watchdog_timeout=300, max_running_requests=None, cuda_graph_bs=[1, 2], api_key=None)"
)
START = [
    ARGS,
    "[2026-05-28 11:00:00 TP0] Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=8, avail mem=40.00 GB",
    "[2026-05-28 11:01:00 TP0] Capture target verify CUDA graph end. bs=[1, 2, 4, 8, 128], elapsed=60.00 s, mem usage=3 GB",
    "[2026-05-28 11:01:01 TP0] Capture draft decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=30.00 GB",
    "[2026-05-28 11:01:21 TP0] Capture draft decode CUDA graph end. bs=[1, 2, 4, 8, 128], elapsed=20.00 s, mem usage=1 GB",
    "[2026-05-28 11:01:22 TP0] max_total_num_tokens=2200000, chunked_prefill_size=8192, max_prefill_tokens=16384, "
    "max_running_requests=128, context_len=32768, available_gpu_mem=20.00 GB",
    "[2026-05-28 11:01:30] The server is fired up and ready to roll!",
]


def decode(running: int, accept: float, queue: int = 0) -> str:
    return (
        f"[2026-05-28 11:02:00 TP0] Decode batch, #running-req: {running}, #token: 900, token usage: 0.12, accept len: "
        f"{accept:.2f}, accept rate: 0.40, cuda graph: True, gen throughput (token/s): 410.50, #queue-req: {queue}"
    )


def test_facts_of_a_start() -> None:
    facts = diagnose_lines([*START, decode(128, 4.4, 3)]).facts
    assert facts.engine == "sglang"
    assert facts.phase is Phase.SERVING
    assert facts.speculative is True
    assert (facts.max_running_requests_asked, facts.max_running_requests) == (128, 128)
    assert (facts.max_total_num_tok, facts.context_len) == (2200000, 32768)
    assert facts.captured_batch_sizes == (1, 2, 4, 8, 128)
    assert facts.num_tokens_per_req == 8  # of the verify graph, not of the draft's that is captured after it
    assert facts.args["mem_fraction_static"] == 0.88
    assert "nested" not in facts.args
    (point,) = facts.decode
    assert (point.running_req, point.queue_req, point.accept_len) == (128, 3, 4.4)
    assert (point.used_frac, point.gen_tok_per_s, point.graph) == (0.12, 410.5, True)
    assert point.at_s == 1779966120.0


def test_arguments_in_the_form_of_a_dataclass() -> None:
    """Before 0.5 the arguments were printed as ServerArgs(...), often broken over lines by whoever pasted them."""
    facts = diagnose_lines([OLD_ARGS, "[2025-02-14 07:09:19] The server is fired up and ready to roll!"]).facts
    assert facts.args["tp_size"] == 2
    assert facts.args["model_path"] == "/data/m"
    assert facts.speculative is False
    assert facts.max_running_requests_asked is None


def test_accept_length_is_read_at_full_batch_not_at_the_tail() -> None:
    """The field's own tool averaged the last 15 readings of a run, which is its tail."""
    lines = [decode(64, 4.5)] * 20 + [decode(1, 1.0)] * 100
    facts = diagnose_lines(lines).facts
    assert facts.accept_len_full_batch == 4.5
    assert facts.n_full_batch == 20
    assert facts.max_running_req == 64


def test_prefill_sums_give_the_prefix_hit_share() -> None:
    line = (
        "[2026-05-28 11:02:00 TP0] Prefill batch, #new-seq: 2, #new-token: 300, #cached-token: 100, token usage: 0.01"
    )
    facts = diagnose_lines([line] * 5).facts
    assert (facts.prefill_new_seq, facts.prefill_new_tok, facts.prefill_cached_tok) == (10, 1500, 500)
    assert facts.prefix_hit_frac == 0.25


def test_access_log_counts_good_answers_only() -> None:
    good = '[2026-05-28 11:02:00] INFO:     127.0.0.1:4242 - "POST /generate HTTP/1.1" 200 OK'
    bad = '[2026-05-28 11:02:00] INFO:     127.0.0.1:4242 - "GET /get_load HTTP/1.1" 404 Not Found'
    assert diagnose_lines([good, bad, good]).facts.n_requests_ok == 2


def test_points_are_thinned_and_counts_are_not() -> None:
    """A followed log must not grow in memory."""
    diagnoser = Diagnoser()
    n_lines = ALL_UP_TO + 100 * ONE_IN
    diagnoser.feed_block("\n".join(decode(8, 3.0) for _ in range(n_lines)).encode())
    facts = diagnoser.facts()
    assert facts.n_decode_lines == n_lines
    assert 0 < len(facts.decode) <= MAX_POINTS
    assert facts.accept_len_full_batch == 3.0


@pytest.mark.parametrize(
    ("line", "engine", "version"),
    [
        ("docker run lmsysorg/sglang:v0.5.12-cu130 python3 -m sglang.launch_server", "sglang", "0.5.12-cu130"),
        ("sglang: 0.5.15", "sglang", "0.5.15"),
        ("INFO 05-28 10:00:00 [api_server.py:1] vLLM API server version 0.22.1", "vllm", "0.22.1"),
        ("INFO Initializing a V1 LLM engine (v0.27.1) with config: model='m'", "vllm", "0.27.1"),
    ],
)
def test_engine_version_when_the_log_shows_it(line: str, engine: str, version: str) -> None:
    diagnosis = diagnose_lines([line, "[2026-05-28 11:01:30] The server is fired up and ready to roll!"])
    assert diagnosis.engine_version == version
    assert diagnosis.facts.engine == engine


def test_words_of_a_request_or_of_the_arguments_are_no_failure() -> None:
    """Users ask about errors; the arguments name watchdogs and signal handlers."""
    lines = [
        *START,
        "[2026-05-28 11:02:00] Receive: obj=GenerateReqInput(rid='1', text='RuntimeError: CUDA out of memory, NCCL error')",
        "[2026-05-28 11:02:01] Finish: obj=GenerateReqInput(rid='1'), out={'text': 'An illegal memory access is a fault.'}",
        decode(1, 4.0),
    ]
    assert diagnose_lines(lines).healthy


def test_a_survived_failure_is_told_beside_a_healthy_server() -> None:
    lines = [
        *START,
        "Traceback (most recent call last):",
        '  File "SITE/sglang/srt/entrypoints/http_server.py", line 9, in generate',
        "IndexError: list index out of range",
        *[decode(8, 4.0)] * 60,
    ]
    diagnosis = diagnose_lines(lines)
    assert diagnosis.healthy
    assert [(other.slug, other.role) for other in diagnosis.secondary] == [("index-out-of-bounds", "recovered")]
