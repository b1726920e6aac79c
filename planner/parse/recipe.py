"""Engine arguments written as keys: ``tp-size: 8`` in a recipe, ``sglang_config`` of a disaggregated one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from planner.parse.model import ContainerFacts, EnvHow, JobFacts, Launcher, Role, Token
from planner.parse.nodes import Listing, Mapping, Scalar, Tree
from planner.parse.resources import whole_number
from planner.parse.setting import Collector, Draft, EnvItem, KeyedFlag, Setting, role_of
from planner.parse.source import LONGEST, Field, Mapped

__all__ = ["KNOWN_KEYS", "env_items", "keyed_launch", "looks_keyed", "read_recipe"]

_KNOWN_KEY_WORDS = """
model_path model tp tp_size tensor_parallel_size dp dp_size data_parallel_size ep ep_size expert_parallel_size
mem_fraction_static max_running_requests cuda_graph_max_bs cuda_graph_bs chunked_prefill_size
max_prefill_tokens context_length kv_cache_dtype attention_backend decode_attention_backend
prefill_attention_backend moe_runner_backend moe_a2a_backend disaggregation_mode speculative_algorithm
speculative_num_steps speculative_eagle_topk speculative_num_draft_tokens speculative_draft_model_path
served_model_name trust_remote_code disable_radix_cache enable_dp_attention page_size quantization
max_total_tokens enable_flashinfer_allreduce_fusion schedule_policy disable_cuda_graph stream_interval pp_size
pipeline_parallel_size
"""
KNOWN_KEYS = frozenset(_KNOWN_KEY_WORDS.split())
"""Common argument names of SGLang's ``ServerArgs`` and its options (0.5.x), by which a keyed launch is recognised."""
_WEAK_KEYS = frozenset(
    {
        "model",
        "tp",
        "dp",
        "ep",
        "tp_size",
        "dp_size",
        "ep_size",
        "pp_size",
        "tensor_parallel_size",
        "data_parallel_size",
    }
    | {"pipeline_parallel_size", "expert_parallel_size", "quantization", "kv_cache_dtype", "served_model_name"}
    | {"trust_remote_code", "context_length", "page_size", "schedule_policy"}
)
"""Names that other programs have as well: they do not make a mapping a launch."""
_OTHER_ENGINES = frozenset({"max_model_len", "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens"})
_SUBJECTS = frozenset({"model_path", "model", "disaggregation_mode"})
_MANY = 4
_NESTED = re.compile(r"config|override|json|kwargs|args")
_DEEPEST_VALUE = 6


def _plain(key: str) -> str:
    return key.strip("-").replace("-", "_")


def looks_keyed(tree: Mapping) -> bool:
    """Whether the keys of a mapping are engine arguments: some that only SGLang has, and a model or many of them."""
    keys = set()
    for key, value in tree.pairs():
        name = _plain(key.text)
        if name in _OTHER_ENGINES or (isinstance(value, Mapping) and _NESTED.search(name) is None):
            return False
        keys.add(name)
    known = keys & KNOWN_KEYS
    return bool(known - _WEAK_KEYS) and len(known) > 1 and (bool(known & _SUBJECTS) or len(known) >= _MANY)


def env_items(tree: Tree | None, how: EnvHow) -> list[EnvItem]:
    """Variables of a mapping, of ``NAME=value`` items, or of Kubernetes ``{name, value}`` items."""
    from planner.parse.launchers import assignment

    items: list[EnvItem] = []
    if isinstance(tree, Mapping):
        for key, value in tree.pairs():
            if isinstance(value, Scalar) and value.kind != "null":
                items.append(EnvItem(key.text, value.field(), how, True, (key.start, key.end)))
    elif isinstance(tree, Listing):
        for entry in tree.items:
            if isinstance(entry, Scalar) and (item := assignment(entry.field(), how)) is not None:
                items.append(item)
            elif isinstance(entry, Mapping) and (name := entry.get("name")) is not None and isinstance(name, Scalar):
                given = entry.get("value")
                if isinstance(given, Scalar):
                    items.append(EnvItem(name.text, given.field(), how, True, (name.start, name.end)))
                elif entry.get("valueFrom") is not None:
                    unknown = Field(Mapped("\ufdd0", [name.start], [name.end]), name.start, name.end)
                    items.append(EnvItem(name.text, unknown, how, True, (name.start, name.end)))
    return items


def keyed_launch(
    tree: Mapping,
    setting: Setting,
    out: Collector,
    *,
    shared: Mapping | None = None,
    launcher: Launcher = Launcher.ENGINE,
) -> None:
    """Adds the launch whose arguments are the keys of ``tree``."""
    flags: list[KeyedFlag] = []
    own = {_plain(key.text) for key, _ in tree.pairs()}
    pairs = [] if shared is None else [pair for pair in shared.pairs() if _plain(pair[0].text) not in own]
    for key, value in [*pairs, *tree.pairs()]:
        flags.append(_keyed_flag(key, value))
    add_keyed(flags, setting, out, (tree.start, tree.end), launcher)


def add_keyed(
    flags: Sequence[KeyedFlag], setting: Setting, out: Collector, at: tuple[int, int], launcher: Launcher
) -> None:
    """Adds a launch from flags with their values."""
    argv: list[Field] = []
    off: list[KeyedFlag] = []
    for flag in flags:
        if flag.values is None:
            off.append(flag)
        else:
            argv += [flag.name, *flag.values]
    mode = next((flag.values for flag in flags if flag.name.text == "--disaggregation-mode" and flag.values), None)
    role = role_of(mode[0].text) if mode else None
    setting = replace(setting, role=role or setting.role)
    out.add(Draft(launcher, (), tuple(argv), setting, *at, keyed=True, switched_off=tuple(off), site=at))


def _keyed_flag(key: Scalar, value: Tree) -> KeyedFlag:
    text = "--" + _plain(key.text).replace("_", "-")
    name = Field(Mapped.at(text, key.start, key.end), key.start, key.end, layers=("key", *key.layers))
    if isinstance(value, Scalar):
        if value.kind == "null" or (value.kind in ("bool", "str") and value.text.lower() == "false"):
            return KeyedFlag(name, None)
        if value.kind in ("bool", "str") and value.text.lower() == "true":
            return KeyedFlag(name, ())
        return KeyedFlag(name, (value.field(),))
    if isinstance(value, Listing) and all(isinstance(item, Scalar) for item in value.items):
        return KeyedFlag(name, tuple(item.field() for item in value.items if isinstance(item, Scalar)))
    text = json.dumps(_plain_value(value, 0))[:LONGEST]
    return KeyedFlag(name, (Field(Mapped.at(text, value.start, value.end), value.start, value.end, layers=("fixed",)),))


def _plain_value(tree: Tree, depth: int) -> object:
    if depth > _DEEPEST_VALUE:
        return None
    if isinstance(tree, Mapping):
        return {key.text: _plain_value(value, depth + 1) for key, value in tree.pairs()}
    if isinstance(tree, Listing):
        return [_plain_value(item, depth + 1) for item in tree.items]
    if tree.kind in ("int", "float", "bool", "null"):
        try:
            return json.loads(tree.text.lower())
        except ValueError:
            return tree.text
    return tree.text


def read_recipe(tree: Mapping, setting: Setting, out: Collector) -> bool:
    """Reads a mapping that holds ``sglang_config``; returns whether it did."""
    backend = tree.get("backend")
    holder = backend if isinstance(backend, Mapping) and isinstance(backend.get("sglang_config"), Mapping) else tree
    config = holder.get("sglang_config")
    if not isinstance(config, Mapping):
        return False
    setting = replace(setting, container=_container(tree) or setting.container)
    shared = config.get("shared", "common")
    found = False
    for key, value in config.pairs():
        role = role_of(key.text)
        if isinstance(value, Mapping) and (role is not None or looks_keyed(value)) and value is not shared:
            env = holder.get(f"{key.text}_environment", f"{key.text}_env") or holder.get("environment")
            inside = replace(setting.named(key.text), role=role, job=_job(tree, key.text))
            inside = inside.with_env(env_items(env, EnvHow.CONTAINER))
            keyed_launch(value, inside, out, shared=shared if isinstance(shared, Mapping) else None)
            found = True
        elif isinstance(value, Scalar) and "sglang" in value.text:
            out.script(value.value, setting.named(key.text), 0)
            found = True
    if not found and looks_keyed(config):
        env = holder.get("environment", "aggregated_environment")
        inside = replace(setting, role=setting.role or Role.AGGREGATED).with_env(env_items(env, EnvHow.CONTAINER))
        keyed_launch(config, inside, out)
        found = True
    return found


def _container(tree: Mapping) -> ContainerFacts | None:
    model = tree.get("model")
    for holder in (model, tree):
        if isinstance(holder, Mapping):
            image = holder.get("container", "image")
            if isinstance(image, Scalar) and image.kind == "str":
                token = Token(image.text, image.text, 0, 0, 0, 0, True, image.start, image.end, layers=image.layers)
                return ContainerFacts(image=token)
    return None


def _job(tree: Mapping, role: str) -> JobFacts | None:
    resources = tree.get("resources")
    if not isinstance(resources, Mapping):
        return None
    short = {"aggregated": "agg"}.get(role, role)
    nodes = whole_number(resources.text(f"{short}_nodes", f"{role}_nodes"))
    workers = whole_number(resources.text(f"{short}_workers", f"{role}_workers"))
    if nodes is not None and workers:
        nodes = max(1, nodes // workers)
    return JobFacts(nodes=nodes, gpus_per_node=whole_number(resources.text("gpus_per_node")))
