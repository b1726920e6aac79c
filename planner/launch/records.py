"""Observations from a launch: who, what, where, and how it ended."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from planner.diagnose import redact_argv
from planner.domain import Candidate, Observation, Outcome
from planner.launch.target import Target

__all__ = ["Identity", "effective_of", "new_observation", "now_utc"]

_KEPT = (
    "model_path", "served_model_name", "dtype", "quantization", "kv_cache_dtype", "context_length", "tp_size",
    "pp_size", "dp_size", "ep_size", "enable_dp_attention", "mem_fraction_static", "max_running_requests",
    "max_total_num_tokens",
    "chunked_prefill_size", "max_prefill_tokens", "page_size", "schedule_policy", "disable_radix_cache",
    "disable_overlap_schedule", "attention_backend", "decode_attention_backend", "prefill_attention_backend",
    "sampling_backend", "grammar_backend", "moe_runner_backend", "moe_a2a_backend", "disable_cuda_graph",
    "enable_nccl_nvls", "enable_symm_mem", "disable_custom_all_reduce", "flashinfer_allreduce_fusion_backend",
    "enable_deterministic_inference", "speculative_algorithm", "speculative_draft_model_path", "speculative_num_steps",
    "speculative_eagle_topk", "speculative_num_draft_tokens", "speculative_ddtree_budget", "version",
)  # fmt: skip
"""Fields of /server_info that an observation keeps: those that a planner or a reader compares."""


_COMMIT = re.compile(r"[+.]g([0-9a-f]{7,40})\b")
"""Commit in the version of a build between releases: ``0.5.23.dev12+g1a2b3c4d5``."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a measurement is of. Unknown parts say so."""

    hardware: str = "unknown"
    model: str = "unknown"
    drafter: str | None = None
    engine_commit: str | None = None
    domain: str = "unknown"
    source: str = "plan-config launch"

    @classmethod
    def of(cls, target: Target, *, hardware: str | None = None, domain: str | None = None) -> Identity:
        """From a plan's versions, or the argv; what the caller says wins."""
        versions = target.versions
        model = versions.model if versions else target.option("--model-path", "--model") or "unknown"
        drafter = versions.drafter if versions else target.option("--speculative-draft-model-path")
        return cls(
            hardware=hardware or (versions.hardware if versions else "unknown"),
            model=model,
            drafter=drafter,
            domain=domain or (target.workload.domain.value if target.workload else "unknown"),
        )


def now_utc() -> str:
    """The time of recording."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def new_observation(
    identity: Identity,
    *,
    target: Target | None,
    engine_version: str | None,
    outcome: Outcome,
    candidate: Candidate | None = None,
    info: Mapping[str, Any] | None = None,
    driver: str | None = None,
    log_digest: str | None = None,
) -> Observation:
    """An observation without figures. Its id is new."""
    recorded = now_utc()
    version = str((info or {}).get("version") or engine_version or "unknown")
    commit = _COMMIT.search(version)
    return Observation(
        id=f"obs-{recorded[:10].replace('-', '')}-{secrets.token_hex(6)}",
        hardware=identity.hardware,
        model=identity.model,
        drafter=identity.drafter,
        engine_version=version,
        engine_commit=identity.engine_commit or (commit.group(1) if commit else None),
        candidate=candidate,
        argv=redact_argv(target.argv) if target is not None else (),
        env=tuple(zip((name for name, _ in target.env), _hidden(target.env), strict=True)) if target else (),
        effective=effective_of(info),
        domain=identity.domain,
        driver=driver,
        outcome=outcome,
        log_digest=log_digest,
        recorded_at=recorded,
        source=identity.source,
    )


def _hidden(env: tuple[tuple[str, str], ...]) -> list[str]:
    return [text.partition("=")[2] for text in redact_argv([f"{name}={value}" for name, value in env])]


def effective_of(info: Mapping[str, Any] | None) -> tuple[tuple[str, bool | int | float | str], ...]:
    """The scalar settings of /server_info that are kept."""
    chosen = ((name, (info or {}).get(name)) for name in _KEPT)
    return tuple((name, value) for name, value in chosen if isinstance(value, (bool, int, float, str)))
