"""What happens when memory is known: request pool, captured batches, NCCL environment, absorbed prefill."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.runtime import capture_sizes, graph_batch_step, nccl_environment, request_pool, runtime_facts
from tests.engine.test_resolve import DFLASH, KIMI, resolved


@pytest.mark.parametrize(
    ("values", "capacity", "context", "rules", "pool"),
    [
        ({"max_running_requests": 48}, None, None, "0.5.23", 48),
        ({"max_running_requests": 48, "attn_dp_size": 8}, None, None, "0.5.23", 6),
        ({"max_running_requests": 4, "attn_dp_size": 8}, None, None, "0.5.23", 1),
        ({"max_running_requests": 48}, 60, 4096, "0.5.23", 30),
        ({"max_running_requests": 48}, 60, 4096, "0.5.12.post1", 48),
        ({"max_running_requests": 4096}, 100_000, 131_072, "0.5.12.post1", 2048),
        ({}, None, None, "0.5.23", None),
        ({}, 1_000_000, 131_072, "0.5.23", 3906),
        ({}, 2_000, 131_072, "0.5.23", 1000),
    ],
)
def test_request_pool(
    values: dict[str, Any], capacity: int | None, context: int | None, rules: str, pool: int | None
) -> None:
    assert request_pool(values, token_capacity=capacity, context_len=context, rules=rules) == pool


def test_captured_batches_are_clamped_to_the_request_pool() -> None:
    """Both versions clamp at run time: a ladder to 512 with 48 requests captures up to 48, which joins the ladder."""
    for version in ("0.5.12.post1", "0.5.23"):
        facts = runtime_facts(resolved([*KIMI, *DFLASH], version=version))
        assert facts.request_pool == 48
        assert facts.capture_sizes[-1] == 48
        assert facts.tokens_per_request == 8
        assert facts.verify_rows == 48 * 8


def test_captured_batches_with_attention_dp_are_multiples_of_the_group() -> None:
    values = {
        "cuda_graph_bs_decode": [1, 2, 3, 4, 5, 6, 8, 12],
        "tp_size": 8,
        "attn_dp_size": 2,
        "moe_a2a_backend": "none",
    }
    assert capture_sizes(values, pool=10) == (4, 8, 12)
    assert capture_sizes(values | {"attn_dp_size": 1}, pool=10) == (1, 2, 3, 4, 5, 6, 8, 10)
    assert capture_sizes(values | {"cuda_graph_backend_decode": "disabled"}, pool=10) == ()


@pytest.mark.parametrize(
    ("tp", "dp", "tokens", "step"), [(8, 1, 1, 1), (8, 2, 1, 4), (8, 2, 8, 1), (8, 2, 9, 4), (8, 8, 1, 1), (8, 2, 6, 2)]
)
def test_step_of_captured_batches(tp: int, dp: int, tokens: int, step: int) -> None:
    assert graph_batch_step(tp_size=tp, attention_dp_size=dp, tokens_per_request=tokens) == step


@pytest.mark.parametrize(
    ("values", "env", "nvls"),
    [
        ({}, {}, "0"),
        ({}, {"NCCL_NVLS_ENABLE": "1"}, "1"),
        ({"enable_nccl_nvls": True}, {"NCCL_NVLS_ENABLE": "0"}, "1"),
        ({"enable_symm_mem": True}, {}, "1"),
    ],
)
def test_nccl_environment(values: dict[str, Any], env: dict[str, str], nvls: str) -> None:
    """Without the flag the engine keeps what is set and writes 0 where nothing is."""
    assert dict(nccl_environment(values, env))["NCCL_NVLS_ENABLE"] == nvls


def test_prefill_behind_a_prefix() -> None:
    """With MLA on triton, a chunk behind a cached prefix runs absorbed with a row for each token."""
    assert runtime_facts(resolved([*KIMI, "--attention-backend", "triton"])).prefix_prefill_absorbs
    plain = resolved([*KIMI, "--cuda-graph-backend-prefill", "disabled"])
    assert not runtime_facts(plain).prefix_prefill_absorbs
    dense = ["--model-path", KIMI[1].replace("kimi-int4", "qwen3-dense"), "--attention-backend", "triton"]
    assert not runtime_facts(resolved(dense)).prefix_prefill_absorbs
