"""Kubernetes manifests: containers wherever they stand, LeaderWorkerSet and operators' own kinds included."""

from __future__ import annotations

from dataclasses import replace

from planner.parse.compose import flags_only, image_token
from planner.parse.interpolation import interpolate_kubernetes
from planner.parse.launchers import read_words
from planner.parse.model import ContainerFacts, EnvHow, JobFacts
from planner.parse.nodes import Listing, Mapping, Scalar, Tree
from planner.parse.recipe import env_items
from planner.parse.resources import merge_jobs, size_bytes, whole_number
from planner.parse.setting import Collector, Setting
from planner.parse.source import Field

__all__ = ["is_container", "read_container"]

_GPU_KEYS = ("nvidia.com/gpu", "amd.com/gpu", "gpu")


def is_container(tree: Mapping) -> bool:
    """Whether a mapping describes a container: it has words to run, and an image or a name."""
    return any(tree.get(key) is not None for key in ("command", "args")) and any(
        isinstance(tree.get(key), Scalar) for key in ("image", "name", "imagePullPolicy")
    )


def read_container(tree: Mapping, setting: Setting, out: Collector, depth: int) -> bool:
    """Adds the launch of a container, if it is one."""
    items = env_items(tree.get("env"), EnvHow.CONTAINER)
    known = {item.name: item.value.chars for item in [*setting.env, *items]}
    items = [
        replace(item, value=replace(item.value, chars=interpolate_kubernetes(item.value.chars, known)))
        for item in items
    ]
    known = {item.name: item.value.chars for item in [*setting.env, *items]}
    words: list[Field] = []
    for key in ("command", "args"):
        for word in _words(tree.get(key)):
            words.append(replace(word, chars=interpolate_kubernetes(word.chars, known)))
    inside = replace(setting.named(tree.text("name")), container=_facts(tree, setting)).with_env(items)
    gpus = inside.container.n_gpus if inside.container is not None else None
    if inside.job is not None and inside.job.gpus_per_node is None and gpus is not None:
        inside = replace(inside, job=merge_jobs(inside.job, JobFacts(gpus_per_node=gpus)))
    if not words:
        return False
    before = len(out.drafts)
    found = read_words(words, inside, out, depth, site=tree.start) or len(out.drafts) > before
    image = inside.container.image if inside.container is not None else None
    if not found and words[0].shown.startswith("--model") and image is not None and "sglang" in (image.text or ""):
        flags_only(words, inside, out, tree.start)
        found = True
    return found


def _words(tree: Tree | None) -> list[Field]:
    if isinstance(tree, Listing):
        return [item.field() for item in tree.items if isinstance(item, Scalar)]
    return [tree.field()] if isinstance(tree, Scalar) and tree.kind != "null" else []


def _facts(tree: Mapping, setting: Setting) -> ContainerFacts:
    facts = setting.container or ContainerFacts()
    image = tree.get("image")
    if isinstance(image, Scalar) and image.kind != "null":
        facts = replace(facts, image=image_token(image))
    resources = tree.get("resources")
    for part in ("limits", "requests"):
        holder = resources.get(part) if isinstance(resources, Mapping) else None
        count = holder.text(*_GPU_KEYS) if isinstance(holder, Mapping) else None
        if count is not None and facts.gpus is None:
            facts = replace(facts, gpus=count, n_gpus=whole_number(count))
    mounts = tree.get("volumeMounts")
    if isinstance(mounts, Listing):
        for mount in mounts.items:
            if isinstance(mount, Mapping) and (mount.text("mountPath") or "").rstrip("/") == "/dev/shm":
                facts = replace(facts, shm_mounted=True)
                limit = _volume_size(setting, mount.text("name"))
                facts = replace(facts, shm_bytes=limit if limit is not None else facts.shm_bytes)
    return facts


def _volume_size(setting: Setting, name: str | None) -> int | None:
    for item in setting.env:
        if item.name == f"volume:{name}":
            return size_bytes(item.value.text, binary=False)
    return None
