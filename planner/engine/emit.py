"""A Candidate as a launch: every value that the prediction relies on is given, in the spelling of the build."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner.domain import (
    AttentionKind,
    Candidate,
    DrafterProfile,
    HardwareProfile,
    Launch,
    LaunchConfig,
    ModelProfile,
    Need,
    Speculation,
)
from planner.engine.argv import write_argv
from planner.engine.dialects import Dialect, DraftTokens, TreeForm, get_dialect
from planner.engine.flag_table import FlagTable
from planner.engine.flags import flag_table
from planner.engine.resolution import Resolution, resolve
from planner.engine.runtime import graph_batch_step
from planner.engine.spelling import dest_in_version
from planner.engine.v0_5_23.memory import tier
from planner.engine.version import EngineVersion, parse_engine_version
from planner.errors import InputError
from planner.units import MIB

__all__ = ["PROGRAM", "candidate_launch", "emit_launch", "emit_launches", "prefix_cache_unsafe"]

PROGRAM = ("python", "-m", "sglang.launch_server")
FIRST_PORT = 30000
"""Port of the first replica (the engine's default)."""
_FILLED = ("moe_runner_backend", "speculative_draft_attention_backend", "sampling_backend")
"""Values that the engine would choose and that step cost depends on: written out as it would choose them."""
_EAGLE_FAMILY = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")


def emit_launch(
    candidate: Candidate,
    *,
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None,
    context_length: int,
    engine_version: EngineVersion | str | None = None,
    dialect: str | None = None,
    needs: Iterable[Need] = (),
    chunked_prefill_size: int | None = None,
    replica: int = 0,
    program: tuple[str, ...] = PROGRAM,
) -> Launch:
    """What to run for one replica of a candidate.

    Raises:
        InputError: the build cannot express the candidate (all faults at once).
        EngineRefusal: the engine would refuse the launch.
    """
    speaks, version = _build(candidate, engine_version, dialect)
    config = candidate_launch(
        candidate,
        hardware=hardware,
        model=model,
        drafter=drafter,
        context_length=context_length,
        engine_version=version,
        dialect=speaks.id,
        needs=needs,
        chunked_prefill_size=chunked_prefill_size,
        replica=replica,
    )
    argv = write_argv(config, version=version, dialect=speaks.id)
    return Launch(argv=(*program, *argv), env=config.env)


def emit_launches(
    candidate: Candidate,
    *,
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None,
    context_length: int,
    engine_version: EngineVersion | str | None = None,
    dialect: str | None = None,
    needs: Iterable[Need] = (),
    chunked_prefill_size: int | None = None,
    program: tuple[str, ...] = PROGRAM,
) -> tuple[Launch, ...]:
    """What to run for every replica of a candidate; errors are those of :func:`emit_launch`.

    The engine is asked once: replicas differ in port and devices, on which no value of it depends.
    """
    speaks, version = _build(candidate, engine_version, dialect)
    first = candidate_launch(
        candidate,
        hardware=hardware,
        model=model,
        drafter=drafter,
        context_length=context_length,
        engine_version=version,
        dialect=speaks.id,
        needs=needs,
        chunked_prefill_size=chunked_prefill_size,
    )
    launches = []
    for replica in range(candidate.replicas):
        config = first if replica == 0 else first.replace(**_of_replica(candidate, replica))
        argv = write_argv(config, version=version, dialect=speaks.id)
        launches.append(Launch(argv=(*program, *argv), env=config.env))
    return tuple(launches)


def candidate_launch(
    candidate: Candidate,
    *,
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None,
    context_length: int,
    engine_version: EngineVersion | str | None = None,
    dialect: str | None = None,
    needs: Iterable[Need] = (),
    chunked_prefill_size: int | None = None,
    replica: int = 0,
) -> LaunchConfig:
    """The LaunchConfig of :func:`emit_launch`, before it is written.

    Raises:
        InputError: the build cannot express the candidate.
        EngineRefusal: the engine would refuse the launch.
    """
    speaks, version = _build(candidate, engine_version, dialect)
    table = flag_table(version.table)
    _check_needs(candidate, speaks, needs)
    fields: dict[str, Any] = {
        "model_path": model.model_path,
        "trust_remote_code": True,
        "tp_size": candidate.tp_size,
        "ep_size": candidate.ep_size,
        "context_length": context_length,
        "kv_cache_dtype": "bf16" if candidate.kv_cache_dtype in ("bf16", "auto") else candidate.kv_cache_dtype,
        "mem_fraction_static": candidate.mem_fraction_static,
        "max_running_requests": candidate.max_running_requests,
        "chunked_prefill_size": chunked_prefill_size or tier(hardware.memory_bytes // MIB, candidate.tp_size)[0],
        "page_size": candidate.page_size,
        "attention_backend": candidate.attention_backend,
    }
    extra: dict[str, Any] = {}
    _parallel(fields, extra, candidate, table)
    _graphs(fields, candidate, table)
    _links(fields, candidate, table)
    _speculation(fields, extra, candidate, drafter, speaks)
    if fields.get("speculative_algorithm") == "DFLASH" and prefix_cache_unsafe(model, version):
        fields["disable_radix_cache"] = True
    _parsers(fields, model, table)
    fields |= _of_replica(candidate, replica)

    def build() -> LaunchConfig:
        return LaunchConfig(**fields, extra_args=tuple(extra.items()))

    resolution = resolve(
        build(), hardware=hardware, model=model, drafter=drafter, engine_version=version, dialect=speaks.id
    )
    _fill(fields, resolution, table)
    return build()


def prefix_cache_unsafe(model: ModelProfile, version: EngineVersion) -> bool:
    """Whether prefix-cache hits are suspected to crash a DFLASH draft: latent attention on releases of mid 2026 (rule
    SCH007, sgl-project/sglang issue 28528)."""
    mid_2026 = version.at_least("0.5.11") and not version.at_least("0.5.19")
    return model.attention_kind is AttentionKind.MLA and mid_2026


def _build(
    candidate: Candidate, engine_version: EngineVersion | str | None, dialect: str | None
) -> tuple[Dialect, EngineVersion]:
    """Dialect and version: the candidate's own where none is named, a dialect's base where no version is."""
    speaks = get_dialect(dialect if dialect is not None else candidate.dialect)
    if isinstance(engine_version, EngineVersion):
        return speaks, engine_version
    text = engine_version or candidate.engine_version or (speaks.base_version if speaks.has_tree else None)
    return speaks, parse_engine_version(text)


def _check_needs(candidate: Candidate, dialect: Dialect, needs: Iterable[Need]) -> None:
    refused = sorted(need.value for need in set(needs) & dialect.refuses)
    if candidate.speculation is Speculation.TREE and refused and dialect.has_tree:
        raise InputError(
            f"dialect {dialect.id} refuses {' and '.join(refused)} with a tree", "take a chain or no speculation"
        )


def _parallel(fields: dict[str, Any], extra: dict[str, Any], candidate: Candidate, table: FlagTable) -> None:
    if candidate.attention_dp_size == 1:
        return
    if "attn_dp_size" in table.by_dest:
        extra["attn_dp_size"] = candidate.attention_dp_size
    else:
        fields |= {"dp_size": candidate.attention_dp_size, "enable_dp_attention": True}
    if candidate.speculation is not Speculation.OFF:
        fields["enable_dp_lm_head"] = True


def _graphs(fields: dict[str, Any], candidate: Candidate, table: FlagTable) -> None:
    if candidate.cuda_graph:
        step = graph_batch_step(
            tp_size=candidate.tp_size,
            attention_dp_size=candidate.attention_dp_size,
            tokens_per_request=candidate.q_len,
        )
        fields["cuda_graph_max_bs_decode"] = -(-candidate.cuda_graph_max_bs // step) * step
    elif "cuda_graph_backend_decode" in table.by_dest:
        fields |= {"cuda_graph_backend_decode": "disabled", "cuda_graph_backend_prefill": "disabled"}
    else:
        fields["disable_cuda_graph"] = True


def _links(fields: dict[str, Any], candidate: Candidate, table: FlagTable) -> None:
    if candidate.enable_nccl_nvls:
        fields["enable_nccl_nvls"] = True
    if not candidate.allreduce_fusion:
        fields["enforce_disable_flashinfer_allreduce_fusion"] = True
    elif "flashinfer_allreduce_fusion_backend" in table.by_dest:
        fields["flashinfer_allreduce_fusion_backend"] = "auto"
    else:
        fields["enable_flashinfer_allreduce_fusion"] = True


def _of_replica(candidate: Candidate, replica: int) -> dict[str, Any]:
    """Fields that differ from replica to replica: port and environment."""
    fields: dict[str, Any] = {}
    env: list[tuple[str, str]] = []
    if candidate.replicas > 1:
        fields["port"] = FIRST_PORT + replica
        first = replica * candidate.tp_size
        gpus = ",".join(str(gpu) for gpu in range(first, first + candidate.tp_size))
        env.append(("CUDA_VISIBLE_DEVICES", gpus))
    if not candidate.enable_nccl_nvls:
        env.append(("NCCL_NVLS_ENABLE", "0"))  # without the flag the engine keeps a value that is already set
    return fields | {"env": tuple(env)}


def _speculation(
    fields: dict[str, Any],
    extra: dict[str, Any],
    candidate: Candidate,
    drafter: DrafterProfile | None,
    dialect: Dialect,
) -> None:
    if candidate.speculation is Speculation.OFF:
        return
    if drafter is None:
        raise InputError("speculation needs a drafter", "name one with --drafter")
    if drafter.algorithm != "NEXTN":
        fields["speculative_draft_model_path"] = drafter.model_path
    if drafter.algorithm in _EAGLE_FAMILY:
        chain = candidate.speculation is Speculation.CHAIN
        depth = candidate.budget if chain else min(candidate.budget, drafter.block_size - 1)
        fields |= {
            "speculative_algorithm": drafter.algorithm,
            "speculative_num_steps": depth,
            "speculative_eagle_topk": 1 if chain else candidate.topk,
            "speculative_num_draft_tokens": candidate.q_len,
        }
    elif candidate.speculation is Speculation.CHAIN:
        _block_chain(fields, extra, candidate, drafter)
    else:
        _block_tree(fields, extra, candidate, drafter, dialect)


def _block_chain(fields: dict[str, Any], extra: dict[str, Any], candidate: Candidate, drafter: DrafterProfile) -> None:
    fields["speculative_algorithm"] = drafter.algorithm
    if drafter.algorithm == "DSPARK":
        extra["speculative_dspark_block_size"] = candidate.budget
        return
    fields |= {
        "speculative_num_steps": 1,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": candidate.q_len,
    }


def _block_tree(
    fields: dict[str, Any],
    extra: dict[str, Any],
    candidate: Candidate,
    drafter: DrafterProfile,
    dialect: Dialect,
) -> None:
    if not dialect.has_tree:
        raise InputError(
            f"dialect {dialect.id} has no tree on a {drafter.algorithm} drafter",
            "name a build that has one with --dialect, or take a chain",
        )
    fields["speculative_algorithm"] = dialect.algorithm
    fields["speculative_num_draft_tokens"] = dialect.draft_tokens(
        budget=candidate.budget, block_size=drafter.block_size
    )
    if dialect.tree is TreeForm.BUDGET_TOPK:
        fields["speculative_eagle_topk"] = candidate.topk
    names = {flag.dest for flag in dialect.flags}
    if "speculative_ddtree_budget" in names:
        fields["speculative_ddtree_budget"] = candidate.budget
    if "speculative_ddtree_block_size" in names:
        extra["speculative_ddtree_block_size"] = drafter.block_size
    if "speculative_dflash_tree_width" in names:
        extra["speculative_dflash_tree_width"] = candidate.topk
    for flag in dialect.flags:
        if flag.required and flag.type.value == "bool":
            extra[flag.dest] = True
    if dialect.algorithm == "DFLASH" and dialect.num_draft_tokens is DraftTokens.NODES_WITH_ROOT:
        fields["speculative_dflash_block_size"] = drafter.block_size
    if dialect.disables_overlap:
        fields["disable_overlap_schedule"] = True


def _parsers(fields: dict[str, Any], model: ModelProfile, table: FlagTable) -> None:
    for name in ("tool_call_parser", "reasoning_parser"):
        wanted = getattr(model, name)
        flag = table.by_dest.get(name)
        if wanted is not None and flag is not None and (flag.choices is None or wanted in flag.choices):
            fields[name] = wanted


def _fill(fields: dict[str, Any], resolution: Resolution, table: FlagTable) -> None:
    """Writes out what the engine would choose, so that a later default cannot change it."""
    if resolution.error is not None:
        raise resolution.error
    for name in _FILLED:
        value = resolution.effective.get(name)
        flag = table.by_dest.get(dest_in_version(name, table) or "")
        if value in (None, "auto") or name in fields or flag is None:
            continue
        if flag.choices is None or value in flag.choices:
            fields[name] = value
