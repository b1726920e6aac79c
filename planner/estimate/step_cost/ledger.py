"""Rows of a fit from what a launcher or a benchmark wrote: ledger observations and records of the engine's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.domain import Observation, Speculation
from planner.errors import InputError, Problem

__all__ = ["row_of_benchmark", "row_of_observation"]


def row_of_observation(observation: Observation) -> dict[str, object] | None:
    """A ledger observation as a row, or None when it holds no speed (a failed run, or nothing was measured).

    The step is, in this order: measured, ``tpot_s x accept_len``, or ``concurrency x accept_len / tok_per_s``. With
    speculation and no accept length recorded there is no way from tokens to steps: None.
    """
    candidate = observation.candidate
    if not observation.outcome.ok or candidate is None or observation.concurrency is None:
        return None
    drafted = candidate.speculation is not Speculation.OFF
    accept_len = observation.accept_len if drafted else 1.0
    step_s = observation.step_s
    if step_s is None and accept_len is not None:
        if observation.tpot_s is not None:
            step_s = observation.tpot_s * accept_len
        elif observation.tok_per_s is not None:
            step_s = observation.concurrency * accept_len / observation.tok_per_s
    if step_s is None:
        return None
    row: dict[str, object] = {
        "id": observation.id,
        "engine_version": f"sglang {observation.engine_version}",
        "tp_size": candidate.tp_size,
        "ep_size": candidate.ep_size,
        "attention_dp_size": candidate.attention_dp_size,
        "kv_dtype": candidate.kv_cache_dtype,
        "attention_backend": candidate.attention_backend,
        "q_len": candidate.q_len,
        "kind": candidate.speculation.value,
        "draft": observation.drafter if drafted and observation.drafter else "none",
        "concurrency": observation.concurrency / candidate.replicas,
        "cuda_graph": candidate.cuda_graph,
        "cuda_graph_max_bs": candidate.cuda_graph_max_bs if candidate.cuda_graph else None,
        "nvls": candidate.enable_nccl_nvls,
        "allreduce_fusion": candidate.allreduce_fusion,
        "context_tok": observation.context_tok,
        "output_tok": observation.output_tok,
        "accept_len": accept_len,
        "step_s": step_s,
    }
    return {key: value for key, value in row.items() if value is not None}


def row_of_benchmark(record: Mapping[str, Any], *, name: str = "record") -> dict[str, object]:
    """One JSON line of ``sglang.benchmark.serving`` as a row; the launch is read from its ``server_info``.

    The client counts from the first token, so that mean TPOT x accept length is the step with its share of prefills.

    Raises:
        InputError: what the record lacks, all at once.
    """
    problems: list[Problem] = []

    def need(key: str) -> float:
        value = record.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            problems.append(Problem(f"{key} must be a number above zero", file=name, field=key, value=value))
            return 1.0
        return float(value)

    tpot_ms, completed = need("mean_tpot_ms"), need("completed")
    inputs, outputs = need("total_input_tokens"), need("total_output_tokens")
    clients = need("max_concurrency" if record.get("max_concurrency") else "concurrency")
    server = record.get("server_info")
    server = server if isinstance(server, Mapping) else {}
    algorithm = server.get("speculative_algorithm")
    drafted = bool(algorithm)
    accept = record.get("accept_length")
    if drafted and not accept:
        problems.append(Problem("speculation without accept_length: tokens cannot be turned into steps", file=name))
    if problems:
        raise InputError(problems)
    topk = server.get("speculative_eagle_topk")
    row: dict[str, object] = {
        "id": record.get("tag") or name,
        "engine_version": f"sglang {server.get('version', '')}".strip(),
        "tp_size": server.get("tp_size"),
        "ep_size": server.get("ep_size"),
        "attention_dp_size": server.get("dp_size") if server.get("enable_dp_attention") else None,
        "attention_backend": server.get("attention_backend"),
        "q_len": server.get("speculative_num_draft_tokens") if drafted else 1,
        "kind": ("tree" if topk and topk > 1 else "chain") if drafted else "off",
        "draft": server.get("speculative_draft_model_path") if drafted else None,
        "concurrency": clients,
        "context_tok": max(inputs / completed, 1.0),
        "output_tok": outputs / completed,
        "cuda_graph": not server.get("disable_cuda_graph", False),
        "nvls": bool(server.get("enable_nccl_nvls", False)),
        "accept_len": float(accept) if drafted and accept else 1.0,
        "step_s": tpot_ms / 1e3 * (float(accept) if drafted and accept else 1.0),
    }
    return {key: value for key, value in row.items() if value is not None}
