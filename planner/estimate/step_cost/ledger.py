"""Rows of a fit from what a launcher or a benchmark wrote: ledger observations and records of the engine's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.domain import Observation, Speculation
from planner.errors import InputError, Problem

__all__ = ["row_of_benchmark", "row_of_observation", "why_no_row"]


def row_of_observation(observation: Observation) -> dict[str, object] | None:
    """A ledger observation as a row, or None when it holds no speed (:func:`why_no_row` says why).

    The step is, in this order: measured, ``tpot_s x accept_len``, or ``concurrency x accept_len / tok_per_s``. With
    speculation and no accept length recorded there is no way from tokens to steps: None. Settings are the candidate's,
    or what the server said of itself.
    """
    settings = _settings_of(observation)
    step_s = None if settings is None else _step_s(observation, settings)
    if settings is None or step_s is None or not observation.outcome.ok:
        return None
    assert observation.concurrency is not None
    row = {
        "id": observation.id,
        "engine_version": f"sglang {observation.engine_version}",
        **_shared(settings, observation.concurrency),
        "context_tok": observation.context_tok,
        "output_tok": observation.output_tok,
        "accept_len": observation.accept_len if settings["kind"] != "off" else 1.0,
        "temperature": observation.temperature,
        "domain": observation.domain if observation.domain != "unknown" else None,
        "step_s": step_s,
    }
    if settings["kind"] != "off" and observation.drafter:
        row["draft"] = observation.drafter
    return {key: value for key, value in row.items() if value is not None}


def why_no_row(observation: Observation) -> str | None:
    """Why an observation gives no row, in a few words; None when it does."""
    if not observation.outcome.ok:
        return f"the run failed ({observation.outcome.cause})"
    if observation.concurrency is None:
        return "no concurrency recorded"
    settings = _settings_of(observation)
    if settings is None:
        return "no settings recorded (tp_size, q_len)"
    if _step_s(observation, settings) is not None:
        return None
    if settings["kind"] != "off" and observation.accept_len is None and observation.step_s is None:
        return "speculation without an accept length: tokens cannot be turned into steps"
    return "nothing was timed (step_s, tpot_s or tok_per_s)"


def _settings_of(observation: Observation) -> dict[str, Any] | None:
    """Settings of the run under the names of a row; None where they were not recorded."""
    if observation.concurrency is None:
        return None
    candidate = observation.candidate
    if candidate is None:
        settings = dict(observation.effective)
        return _server_settings(settings) if "tp_size" in settings else None
    drafted = candidate.speculation is not Speculation.OFF
    said = dict(observation.effective)
    return {
        "tp_size": candidate.tp_size,
        "ep_size": candidate.ep_size,
        "attention_dp_size": candidate.attention_dp_size,
        "kv_dtype": candidate.kv_cache_dtype,
        "attention_backend": candidate.attention_backend,
        "q_len": candidate.q_len,
        "kind": candidate.speculation.value,
        "topk": candidate.topk if drafted else None,
        "draft_steps": said.get("speculative_num_steps") if drafted else None,
        "overlap": _overlap(said),
        "draft": observation.drafter if drafted and observation.drafter else "none",
        "cuda_graph": candidate.cuda_graph,
        "cuda_graph_max_bs": candidate.cuda_graph_max_bs if candidate.cuda_graph else None,
        "nvls": candidate.enable_nccl_nvls,
        "allreduce_fusion": candidate.allreduce_fusion,
        "replicas": candidate.replicas,
        "max_running_requests": candidate.max_running_requests,
    }


def _step_s(observation: Observation, settings: Mapping[str, Any]) -> float | None:
    if observation.step_s is not None:
        return observation.step_s
    accept_len = observation.accept_len if settings["kind"] != "off" else 1.0
    if accept_len is None:
        return None
    if observation.tpot_s is not None:
        return observation.tpot_s * accept_len
    if observation.tok_per_s is None or observation.concurrency is None:
        return None
    running = min(float(observation.concurrency), _places(settings))
    return running * accept_len / observation.tok_per_s


def _places(settings: Mapping[str, Any]) -> float:
    """Requests that may run at a time on all replicas."""
    limit = settings.get("max_running_requests")
    return float("inf") if not limit else float(limit) * float(settings.get("replicas") or 1)


def _shared(settings: Mapping[str, Any], clients: float) -> dict[str, Any]:
    """A row's settings, with the requests that run on one replica."""
    running = min(float(clients), _places(settings)) / float(settings.get("replicas") or 1)
    own = {name: value for name, value in settings.items() if name not in ("replicas", "max_running_requests")}
    return {**own, "concurrency": running}


def _server_settings(server: Mapping[str, Any]) -> dict[str, Any]:
    """What ``/server_info`` says, under the names of a row; ``q_len`` is None where speculation does not say it."""
    algorithm, topk = server.get("speculative_algorithm"), server.get("speculative_eagle_topk")
    budget = server.get("speculative_ddtree_budget")
    graphs = server.get("cuda_graph_config")
    decode = graphs.get("decode") if isinstance(graphs, Mapping) else None
    decode = decode if isinstance(decode, Mapping) else {}
    backend = decode.get("backend") or server.get("cuda_graph_backend_decode")
    eager = bool(server.get("disable_cuda_graph") or server.get("disable_decode_cuda_graph") or backend == "disabled")
    q_len: object = 1
    if algorithm:
        q_len = budget + 1 if isinstance(budget, int) else server.get("speculative_num_draft_tokens")
    is_tree = isinstance(budget, int) or "TREE" in str(algorithm).upper() or (isinstance(topk, int) and topk > 1)
    with_dp = bool(server.get("enable_dp_attention"))
    return {
        "tp_size": server.get("tp_size"),
        "ep_size": server.get("ep_size"),
        "attention_dp_size": server.get("dp_size") if with_dp else None,
        "replicas": 1 if with_dp else server.get("dp_size") or 1,
        "kv_dtype": server.get("kv_cache_dtype"),
        "attention_backend": server.get("decode_attention_backend") or server.get("attention_backend"),
        "q_len": q_len,
        "kind": ("tree" if is_tree else "chain") if algorithm else "off",
        "topk": topk if algorithm else None,
        "draft_steps": server.get("speculative_num_steps") if algorithm else None,
        "overlap": _overlap(server),
        "draft": (server.get("speculative_draft_model_path") or str(algorithm).lower()) if algorithm else None,
        "cuda_graph": not eager,
        "cuda_graph_max_bs": None if eager else decode.get("max_bs") or server.get("cuda_graph_max_bs_decode"),
        "nvls": bool(server.get("enable_nccl_nvls", False)),
        "max_running_requests": server.get("max_running_requests"),
    }


def _overlap(server: Mapping[str, Any]) -> bool | str | None:
    """Whether the scheduler's host work overlaps the GPU's; None where the server does not say. A text that is neither
    true nor false is passed on: the row's reader refuses it by name."""
    disabled = server.get("disable_overlap_schedule")
    if isinstance(disabled, str):
        return {"true": False, "false": True}.get(disabled.strip().lower(), disabled)
    return None if disabled is None else not disabled


def _tok_ms(record: Mapping[str, Any], tpot_ms: float, output_tok: float) -> float:
    """Milliseconds for each token after the first, over all tokens."""
    whole, first = record.get("mean_e2e_latency_ms"), record.get("mean_ttft_ms")
    if isinstance(whole, (int, float)) and isinstance(first, (int, float)) and whole > first and output_tok > 1:
        return float(whole - first) / (output_tok - 1.0)
    return tpot_ms


def _served(server: object) -> str | None:
    """What a server says that it serves; its device too where that is no GPU."""
    if not isinstance(server, Mapping) or not server.get("model_path"):
        return None
    device = server.get("device")
    return str(server["model_path"]) + (f" on a {device}" if device in ("cpu", "xpu", "hpu", "npu") else "")


def row_of_benchmark(record: Mapping[str, Any], *, name: str = "record", line: int | None = None) -> dict[str, object]:
    """One JSON line of ``sglang.benchmark.serving`` as a row; the launch is read from its ``server_info``.

    The client counts from the first token: time per token x accept length is the step with its share of prefills. Time
    per token is that of all tokens together, (mean end-to-end - mean TTFT) / (mean output - 1), where the record has
    them: the mean of the requests' own TPOT lets short outputs, whose last step is partly used, weigh too much.
    Fewer requests than clients, or a server that runs fewer, count as that many.

    Raises:
        InputError: what the record lacks, all at once.
    """
    problems: list[Problem] = []

    def fault(message: str, field: str | None = None, hint: str | None = None) -> None:
        value = record.get(field) if field else None
        problems.append(Problem(message, file=name, line=line, field=field, value=value, hint=hint))

    def need(key: str) -> float:
        value = record.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            fault(f"{key} must be a number above zero (got {value!r})", key, "write it with sglang.benchmark.serving")
            return 1.0
        return float(value)

    tpot_ms, completed = need("mean_tpot_ms"), need("completed")
    inputs, outputs = need("total_input_tokens"), need("total_output_tokens")
    clients = min(need("max_concurrency" if record.get("max_concurrency") else "concurrency"), completed)
    server = record.get("server_info")
    settings = _server_settings(server if isinstance(server, Mapping) else {})
    drafted = settings["kind"] != "off"
    accept = record.get("accept_length")
    if drafted and not accept:
        fault("speculation without accept_length: tokens cannot be turned into steps", "accept_length")
    if drafted and settings["q_len"] is None:
        fault("speculation without speculative_num_draft_tokens in server_info: the length of a step is not known")
    if problems:
        raise InputError(problems)
    accept_len = float(accept) if drafted and accept else 1.0
    version = server.get("version", "") if isinstance(server, Mapping) else ""
    row: dict[str, object] = {
        "id": record.get("tag") or None,
        "model": _served(server),
        "engine_version": f"sglang {version}".strip(),
        **_shared(settings, clients),
        "context_tok": max(inputs / completed, 1.0),
        "output_tok": outputs / completed,
        "accept_len": accept_len,
        "rounds": max(1, round(outputs / accept_len)) if drafted else None,
        "bonus_counted": True if drafted else None,
        "step_s": _tok_ms(record, tpot_ms, outputs / completed) / 1e3 * accept_len,
    }
    return {key: value for key, value in row.items() if value is not None}
