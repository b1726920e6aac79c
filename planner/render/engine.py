"""Text and JSON of resolutions and flag tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["diff_json", "render_diff", "render_resolution", "render_table", "resolution_json", "table_json"]

_HOUSEKEEPING = frozenset(
    {
        "_quantization_explicitly_unset",
        "_speculative_draft_quantization_explicitly_set",
        "_swa_full_tokens_ratio_explicitly_set",
        "boundary_reduction",
        "cuda_graph_config",
        "custom_weight_loader",
        "dcp_comm_backend",
        "device",
        "enable_flashinfer_allreduce_fusion",
        "enable_tp_lm_head_all_to_all",
        "encoder_transfer_backend",
        "expert_distribution_recorder_buffer_size",
        "grpc_worker_threads",
        "hicache_ratio",
        "load_balance_method",
        "mm_feature_transport",
        "mm_process_config",
        "prefill_decode_interval",
        "served_model_name",
        "speculative_boundary_reduction",
        "speculative_draft_model_revision",
        "tokenizer_path",
    }
)
"""Filled values that no decision rests on: shown with --all, or where they were asked for."""


def resolution_json(
    resolution: Any, *, read: Any = None, runtime: Any = None, problems: Iterable[Any] = (), version: Any = None
) -> str:
    """``effective``, ``decisions``, ``error`` (null or type and message), ``notes``, ``engine_version``."""
    version = resolution.engine_version if resolution is not None else version
    faults = list(problems)
    error = None
    if resolution is not None and resolution.error is not None:
        error = {
            "type": resolution.error.error_type,
            "message": resolution.error.message,
            "source": resolution.error.source,
        }
    elif faults:
        error = {"type": "SystemExit", "message": str(faults[0].message), "source": "argparse"}
    content = {
        "schema_version": 1,
        "engine_version": version.model_dump(mode="json"),
        "asked": _plain(resolution.asked) if resolution is not None else {},
        "effective": _plain(resolution.effective) if resolution is not None else None,
        "decisions": [
            {
                "field": decision.field,
                "from": _plain(decision.before),
                "to": _plain(decision.after),
                "because": decision.because,
                "source": decision.source,
            }
            for decision in (resolution.decisions if resolution is not None else ())
        ],
        "error": error,
        "runtime": _runtime(runtime),
        "notes": list(resolution.notes) if resolution is not None else list(version.notes),
        "problems": [
            {"fault": fault.fault.value, "index": fault.index, "token": fault.token, "message": str(fault)}
            for fault in faults
        ],
        "abbreviated": dict(read.abbreviated) if read is not None else {},
        "deprecated": dict(read.deprecated) if read is not None else {},
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _runtime(facts: Any) -> dict[str, Any] | None:
    if facts is None:
        return None
    return {
        "request_pool_per_rank": facts.request_pool,
        "capture_sizes": list(facts.capture_sizes),
        "tokens_per_request": facts.tokens_per_request,
        "verify_rows_per_rank": facts.verify_rows,
        "nccl_env": dict(facts.nccl_env),
        "prefix_prefill_absorbs": facts.prefix_prefill_absorbs,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


def render_resolution(resolution: Any, *, read: Any = None, runtime: Any = None, show_all: bool = False) -> str:
    """Asked against effective, one line a value, with the reason and where the engine does it."""
    lines = [f"SGLang {resolution.engine_version}"]
    lines += [f"  note: {note}" for note in resolution.notes]
    if read is not None:
        lines += [f"  {short} was completed to {full}" for short, full in read.abbreviated.items()]
        lines += [f"  {name} is deprecated" + (f": use {new}" if new else "") for name, new in read.deprecated.items()]
    if resolution.error is not None:
        lines += [
            "",
            f"REFUSED  the engine raises {resolution.error.error_type}"
            + (f" ({resolution.error.source})" if resolution.error.source else ""),
            f"  {resolution.error.message or '(no message)'}",
        ]
    asked = [decision for decision in resolution.decisions if decision.field in resolution.asked]
    filled = [
        decision
        for decision in resolution.decisions
        if decision.field not in resolution.asked and (show_all or decision.field not in _HOUSEKEEPING)
    ]
    lines += _decisions("CHANGED (asked -> effective)", asked) + _decisions("FILLED", filled)
    kept = {
        name: value
        for name, value in resolution.asked.items()
        if resolution.decision(name) is None and value is not None
    }
    if kept:
        lines += ["", "AS ASKED", *(f"  {name} = {_short(value)}" for name, value in kept.items())]
    if runtime is not None:
        lines += ["", "AT RUN TIME (one attention-DP rank)"]
        pool = runtime.request_pool
        lines.append(f"  requests: {'bounded by KV capacity' if pool is None else f'at most {pool}'}")
        sizes = runtime.capture_sizes
        lines.append(f"  graphs captured for batches {_short(sizes)}" if sizes else "  no graphs")
        if runtime.verify_rows is not None:
            lines.append(
                f"  rows of the largest step: {sizes[-1]} x {runtime.tokens_per_request} = {runtime.verify_rows}"
            )
        if runtime.prefix_prefill_absorbs:
            lines.append("  prefill behind a cached prefix goes through the absorbed MLA path, one row a token")
        lines.append("  " + ", ".join(f"{name}={value}" for name, value in runtime.nccl_env))
    if show_all:
        lines += [
            "",
            "EFFECTIVE",
            *(f"  {name} = {_short(value)}" for name, value in sorted(resolution.effective.items())),
        ]
    return "\n".join(lines) + "\n"


def _decisions(title: str, decisions: list[Any]) -> list[str]:
    if not decisions:
        return []
    width = max(len(decision.field) for decision in decisions)
    lines = ["", title]
    for decision in decisions:
        before = f"{_short(decision.before)} -> " if title.startswith("CHANGED") else ""
        lines.append(f"  {decision.field:<{width}}  {before}{_short(decision.after)}")
        lines.append(f"  {'':<{width}}    {decision.because}  [{decision.source}]")
    return lines


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)) and len(value) > 8:
        return f"[{', '.join(map(str, value[:3]))}, ... {value[-1]}] ({len(value)})"
    return str(value)


def render_table(table: Any, part: str | None = None) -> str:
    """One line a flag: spellings, type, default, choices."""
    lines = [f"SGLang {table.version} ({table.released}), {len(table.flags)} flags"]
    for flag in table.flags:
        if part is not None and not any(part in name for name in flag.names):
            continue
        kind = {"value": flag.type.value, "list": f"{flag.type.value}{flag.nargs}"}.get(
            flag.kind.value, flag.kind.value
        )
        text = f"{', '.join(flag.names)}  [{kind}]"
        if flag.default not in (None, False):
            text += f"  default {_short(flag.default)}"
        if flag.required:
            text += "  required"
        if flag.choices is not None:
            text += f"  one of {', '.join(map(str, flag.choices))}"
        if flag.deprecated is not None:
            text += "  deprecated" + (f": {flag.deprecated}" if flag.deprecated else "")
        lines.append(text)
    return "\n".join(lines) + "\n"


def table_json(table: Any, part: str | None = None) -> str:
    """The table as it is stored, flags filtered by a part of their name."""
    flags = [flag for flag in table.flags if part is None or any(part in name for name in flag.names)]
    content = {
        "version": table.version,
        "released": table.released,
        "flags": [flag.to_row() for flag in flags],
    }
    return json.dumps(content, indent=2) + "\n"


def render_diff(diff: Any) -> str:
    """Added, removed, renamed, deprecated and changed flags."""
    lines = [f"SGLang {diff.old} -> {diff.new}"]
    for title, items in (
        ("ADDED", diff.added),
        ("REMOVED", diff.removed),
        ("RENAMED", [f"{old} -> {new}" for old, new in diff.renamed]),
        ("DEPRECATED", [f"{name}" + (f": {new}" if new else "") for name, new in diff.deprecated]),
        ("CHANGED", [_change(change) for change in diff.changed]),
    ):
        if items:
            lines += [f"{title} ({len(items)})", *(f"  {item}" for item in items)]
    return "\n".join(lines) + "\n"


def _change(change: Any) -> str:
    if change.what == "choices" and change.before is not None and change.after is not None:
        gone = [str(item) for item in change.before if item not in change.after]
        new = [str(item) for item in change.after if item not in change.before]
        parts = ([f"without {', '.join(gone)}"] if gone else []) + ([f"with {', '.join(new)}"] if new else [])
        return f"{change.name} choices: {'; '.join(parts) or 'reordered'}"
    return f"{change.name} {change.what}: {_short(change.before)} -> {_short(change.after)}"


def diff_json(diff: Any) -> str:
    """The diff as JSON."""
    return json.dumps(diff.model_dump(mode="json"), indent=2) + "\n"
