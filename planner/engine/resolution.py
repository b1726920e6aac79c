"""resolve(): what a launch becomes inside the engine, value by value and with reasons; or the error it would raise."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from planner._record import record
from planner.domain import ArgValue, Decision, DrafterProfile, HardwareProfile, LaunchConfig, ModelProfile
from planner.engine.between import Names
from planner.engine.dialects import Dialect, DraftTokens, get_dialect
from planner.engine.facts import draft_facts, model_facts, platform_facts
from planner.engine.flag_table import FlagSpec, FlagType
from planner.engine.flags import flag_table
from planner.engine.spelling import dest_in_version
from planner.engine.state import State
from planner.engine.version import EngineVersion, parse_engine_version
from planner.errors import EngineRefusal

__all__ = ["HIDDEN_FIELDS", "Resolution", "resolve"]

HIDDEN_FIELDS = frozenset({"random_seed"})
"""Values that the engine draws at random: left as asked."""


@record()
class Resolution:
    """The launch as the engine runs it."""

    effective: Mapping[str, Any]
    """SGLang's field names of that version, plus ``cuda_graph_backend_decode`` and ``cuda_graph_max_bs_decode``; as far
    as the rules came when there is an error."""
    decisions: tuple[Decision, ...]
    """One for each value that differs from what was asked, in the engine's order."""
    error: EngineRefusal | None
    engine_version: EngineVersion
    notes: tuple[str, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What the launch gave, by the same names."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment of the server as the launch sets it, with what resolution adds."""

    is_mla: bool = False
    """Whether the target has multi-head latent attention."""

    def decision(self, name: str) -> Decision | None:
        """The decision for a field, or None where it stayed as asked."""
        return next((decision for decision in self.decisions if decision.field == name), None)


def resolve(
    launch: LaunchConfig,
    *,
    hardware: HardwareProfile,
    model: ModelProfile | None = None,
    drafter: DrafterProfile | None = None,
    engine_version: EngineVersion | str | None = None,
    dialect: str | None = None,
    model_config: Mapping[str, Any] | None = None,
    draft_config: Mapping[str, Any] | None = None,
    cuda_visible: bool = True,
) -> Resolution:
    """Resolves one launch. Pure: opens no file, reads no environment but ``launch.env``.

    Args:
        model_config: the target's ``config.json``; without it ``model`` stands for it, less exactly.
        draft_config: the draft model's ``config.json``; without it ``drafter`` stands for it.
        cuda_visible: whether torch sees CUDA where the engine runs. False reproduces an engine that is told of a GPU in
            a process without one (0.5.23): prefill graphs are off by default, and Hopper does not get fa3.

    Raises:
        InputError: unknown version or dialect, or a config.json without the keys that the engine reads.
    """
    version = engine_version if isinstance(engine_version, EngineVersion) else parse_engine_version(engine_version)
    table = flag_table(version.table)
    values: dict[str, Any] = dict(table.defaults)
    given: set[str] = set()
    notes = list(version.notes)
    for name, value in launch.given().items():
        own = _own_field(name, values, table)
        given.add(own)
        values[own] = _python_value(value, table.by_dest.get(dest_in_version(name, table) or ""))
    names = Names(table, flag_table(version.rules))
    values, given = names.for_rules(values, given)
    if "radix_eviction_policy" in given and "_radix_eviction_policy_explicitly_set" in values:
        values["_radix_eviction_policy_explicitly_set"] = True
    state = State(
        version=version.rules,
        values=values,
        given=frozenset(given),
        platform=platform_facts(hardware, cuda_visible=cuda_visible),
        model=model_facts(model, _overridden(model_config, values), path=launch.model_path),
        draft=draft_facts(drafter, draft_config),
        env=dict(launch.env),
    )
    if hardware.vendor != "nvidia":
        state.notes.append(f"{hardware.id}: only CUDA machines were compared with the engine")
    speaks = get_dialect(dialect) if dialect is not None else None
    error: EngineRefusal | None = None
    try:
        if speaks is not None and speaks.has_tree:
            _run_dialect(state, speaks, _rules(version))
        else:
            _rules(version)(state)
    except EngineRefusal as refusal:
        error = refusal
    except ZeroDivisionError as division:  # a count of 0 divides in the engine at the same place
        error = EngineRefusal("ZeroDivisionError", str(division), state.version)
    effective = {name: value for name, value in names.own_values(state.values).items() if not name.endswith("_asked")}
    for name in HIDDEN_FIELDS - given:
        effective.pop(name, None)
    return Resolution(
        effective=effective,
        decisions=names.own_decisions(state.decisions()),
        error=error,
        engine_version=version,
        notes=tuple(dict.fromkeys([*notes, *state.notes])),
        asked=names.own_values(state.asked),
        env=tuple(state.env.items()),
        is_mla=state.model is not None and state.model.is_mla,
    )


def _python_value(value: ArgValue, flag: FlagSpec | None) -> Any:
    """A value as the parser hands it to the engine: lists, numbers of a list, JSON read."""
    if flag is not None and flag.type is FlagType.JSON and isinstance(value, str):
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    if isinstance(value, tuple):
        return [float(item) for item in value] if flag is not None and flag.type is FlagType.FLOAT else list(value)
    return value


def _overridden(config: Mapping[str, Any] | None, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """config.json under ``--json-model-override-args``; text that is no JSON is refused by the rules later."""
    text = values.get("json_model_override_args")
    if config is None or not text:
        return config
    try:
        changes = json.loads(text) if isinstance(text, str) else text
    except json.JSONDecodeError:
        return config
    if not isinstance(changes, Mapping):
        return config
    merged = {
        key: {**config[key], **value}
        for key, value in changes.items()
        if key != "quantization_config" and isinstance(value, Mapping) and isinstance(config.get(key), Mapping)
    }
    return {**config, **changes, **merged}


def _own_field(name: str, values: Mapping[str, Any], table: Any) -> str:
    """Field name of this version's ``ServerArgs`` for a field of LaunchConfig."""
    if name in values:
        return name
    dest = dest_in_version(name, table)
    return dest if dest is not None and dest in values else name


def _rules(version: EngineVersion) -> Callable[[State], None]:
    if version.rules == "0.5.12.post1":
        from planner.engine.v0_5_12.pipeline import run as run_12

        return run_12
    from planner.engine.v0_5_23.pipeline import run as run_23

    return run_23


def _run_dialect(state: State, dialect: Dialect, rules: Callable[[State], None]) -> None:
    """A build with trees: DFLASH's rules where they hold, then what the dialect says of a tree."""
    algorithm = str(state.values.get("speculative_algorithm") or "").upper()
    is_tree = algorithm == dialect.algorithm and _asks_tree(state, dialect)
    if not is_tree:
        rules(state)
        return
    where = f"dialect {dialect.id}"
    nodes = state.values.get("speculative_num_draft_tokens")
    budget = state.values.get("speculative_ddtree_budget")
    topk = state.values.get("speculative_eagle_topk")
    block = state.draft.block_size if state.draft is not None else None
    state.values["speculative_algorithm"] = "DFLASH"
    if dialect.num_draft_tokens is DraftTokens.NODES_WITH_ROOT:
        state.values["speculative_num_draft_tokens"] = block or 16
    rules(state)
    state.set("tree of this build", where, speculative_algorithm=dialect.algorithm)
    if dialect.num_draft_tokens is DraftTokens.NODES_WITH_ROOT:
        state.set(
            "nodes with the root", where, speculative_num_draft_tokens=nodes or state.speculative_num_draft_tokens
        )
        budget = state.speculative_num_draft_tokens - 1
    elif budget is None:
        budget = state.speculative_num_draft_tokens - 1
        state.set("default: a chain", where, speculative_ddtree_budget=budget)
    if topk is not None and dialect.tree.value == "budget_topk":
        state.set("width of the tree", where, speculative_eagle_topk=topk)
    _dialect_requirements(state, dialect, budget, block)


def _asks_tree(state: State, dialect: Dialect) -> bool:
    """DFLASH is a chain in every build unless its switch is given."""
    switches = [flag.dest for flag in dialect.flags if flag.required]
    return not switches or any(state.values.get(name) for name in switches)


def _dialect_requirements(state: State, dialect: Dialect, budget: int, block: int | None) -> None:
    where = f"dialect {dialect.id}"
    if budget < 1:
        state.value_error(f"the tree budget must be at least 1, got {budget}", where)
    if dialect.page_size is not None and state.page_size != dialect.page_size:
        state.value_error(f"DDTREE currently supports only page_size == {dialect.page_size}", where)
    full = budget > (block or budget + 1) - 1
    backend = dialect.tree_attention_backend
    if full and backend is not None:
        prefill = state.prefill_attention_backend or state.attention_backend
        decode = state.decode_attention_backend or state.attention_backend
        if (prefill, decode) != (backend, backend):
            state.value_error(
                f"a tree needs attention backend {backend} for prefill and decode, got {prefill} and {decode}", where
            )
    if state.values.get("speculative_use_rejection_sampling"):
        state.value_error("a tree does not work with --speculative-use-rejection-sampling", where)
    if dialect.disables_overlap:
        state.set("a tree runs without the overlap scheduler", where, disable_overlap_schedule=True)
    if dialect.disables_mixed_chunk:
        state.set("a tree runs without mixed chunks", where, enable_mixed_chunk=False)
    state.notes.append(f"dialect {dialect.id}: {dialect.status}; its rules are not compared with a running engine")
