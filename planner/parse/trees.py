"""Walks YAML and JSON trees for services, containers, recipes, command lists and command strings."""

from __future__ import annotations

from dataclasses import replace

from planner.parse.compose import read_compose
from planner.parse.kubernetes import is_container, read_container
from planner.parse.launchers import read_words
from planner.parse.model import ContainerFacts, EnvHow, Form, JobFacts
from planner.parse.nodes import Listing, Mapping, Scalar, Tree
from planner.parse.recipe import env_items, keyed_launch, looks_keyed, read_recipe
from planner.parse.resources import merge_jobs, size_bytes, whole_number
from planner.parse.setting import MENTION, Collector, EnvItem, Setting, role_of

__all__ = ["read_tree"]

_DEEPEST = 60
_MOST_NODES = 200_000


def read_tree(tree: Tree, setting: Setting, out: Collector, depth: int = 0) -> None:
    """Adds every launch of a document."""
    _Walk(out, depth).visit(tree, setting, 0)


class _Walk:
    def __init__(self, out: Collector, depth: int) -> None:
        self.out, self.depth, self.left = out, depth, _MOST_NODES
        self.volumes: dict[str, EnvItem] = {}

    def visit(self, tree: Tree, setting: Setting, level: int) -> None:
        self.left -= 1
        if level > _DEEPEST or self.left < 0:
            self.out.problem("the document is nested too deeply or its aliases unfold too far", tree.start)
            self.left = -1
            return
        if isinstance(tree, Scalar):
            if tree.kind == "str" and MENTION.search(tree.text) is not None and " " in tree.text:
                self.out.guess(tree.value, setting, self.depth)
        elif isinstance(tree, Listing):
            self.listing(tree, setting, level)
        else:
            self.mapping(tree, setting, level)

    def listing(self, tree: Listing, setting: Setting, level: int) -> None:
        words = [item.field() for item in tree.items if isinstance(item, Scalar)]
        if len(words) > 1 and len(words) == len(tree.items) and MENTION.search(" ".join(word.shown for word in words)):
            before = len(self.out.drafts)
            if read_words(words, setting, self.out, self.depth, site=tree.start) or len(self.out.drafts) > before:
                return
        for item in tree.items:
            self.visit(item, setting, level + 1)
            if self.left < 0:
                return

    def mapping(self, tree: Mapping, setting: Setting, level: int) -> None:
        if (
            isinstance(tree.get("services"), Mapping)
            and tree.get("kind") is None
            and setting.form is not Form.KUBERNETES
        ):
            read_compose(tree, replace(setting, form=Form.COMPOSE), self.out, self.depth)
            return
        if tree.get("apiVersion") is not None and tree.get("kind") is not None:
            setting = replace(setting, form=Form.KUBERNETES)
        # An alias may be met again: it adds nothing.
        if read_recipe(tree, replace(setting, form=Form.RECIPE), self.out):
            return
        setting = self.surroundings(tree, setting)
        if is_container(tree):
            form = setting.form if setting.form in (Form.JSON, Form.RECIPE) else Form.KUBERNETES
            if read_container(tree, replace(setting, form=form), self.out, self.depth):
                return
        if looks_keyed(tree):
            self.keyed(tree, setting)
            return
        for key, value in tree.pairs():
            inside = setting
            role = role_of(key.text)
            if role is not None and key.text not in ("image", "command", "args"):
                inside = replace(setting, name=key.text, role=role)
            self.visit(value, inside, level + 1)
            if self.left < 0:
                return

    def keyed(self, tree: Mapping, setting: Setting) -> None:
        form = setting.form if setting.form is Form.JSON else Form.RECIPE
        image = tree.get("image")
        if isinstance(image, Scalar):
            from planner.parse.compose import image_token

            setting = replace(setting, container=ContainerFacts(image=image_token(image)))
        keyed_launch(tree, replace(setting, form=form), self.out)

    def surroundings(self, tree: Mapping, setting: Setting) -> Setting:
        """What a mapping says for all that is inside it."""
        metadata = tree.get("metadata")
        if isinstance(metadata, Mapping) and metadata.text("name"):
            setting = setting.named(metadata.text("name"))
        container = setting.container or ContainerFacts()
        if tree.text("hostIPC") == "true":
            container = replace(container, ipc_host=True)
        if tree.text("hostNetwork") == "true":
            container = replace(container, network_host=True)
        size = whole_number(tree.text("size")) if tree.get("workerTemplate") is not None else None
        size = whole_number(tree.text("nodeCount")) if size is None and tree.get("nodeCount") is not None else size
        node = tree.get("multinode")
        if isinstance(node, Mapping):
            size = whole_number(node.text("nodeCount"))
        if size is not None:
            setting = replace(setting, job=merge_jobs(setting.job, JobFacts(nodes=size)))
        shared = tree.get("sharedMemory")
        if isinstance(shared, Mapping) and shared.text("size"):
            container = replace(container, shm_mounted=True, shm_bytes=size_bytes(shared.text("size"), binary=False))
        if tree.get("containers", "extraPodSpec") is not None:
            container = _gpus_of(tree, container)
        if container != ContainerFacts():
            setting = replace(setting, container=container)
        if tree.get("extraPodSpec") is not None:
            setting = setting.with_env(env_items(tree.get("envs"), EnvHow.CONTAINER))
        return setting.with_env(_volumes(tree))


def _gpus_of(tree: Mapping, facts: ContainerFacts) -> ContainerFacts:
    resources = tree.get("resources")
    limits = resources.get("limits", "requests") if isinstance(resources, Mapping) else None
    count = limits.text("gpu", "nvidia.com/gpu") if isinstance(limits, Mapping) else None
    return facts if count is None else replace(facts, gpus=count, n_gpus=whole_number(count))


def _volumes(tree: Mapping) -> list[EnvItem]:
    """Size limits of memory volumes, kept beside the variables until a container mounts one at /dev/shm."""
    volumes = tree.get("volumes")
    items: list[EnvItem] = []
    for volume in volumes.items if isinstance(volumes, Listing) else ():
        if isinstance(volume, Mapping) and isinstance(volume.get("name"), Scalar):
            empty = volume.get("emptyDir")
            limit = empty.get("sizeLimit") if isinstance(empty, Mapping) else None
            if isinstance(limit, Scalar):
                items.append(EnvItem(f"volume:{volume.text('name')}", limit.field(), EnvHow.CONTAINER, exported=False))
    return items
