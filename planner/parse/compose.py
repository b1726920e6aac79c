"""Docker compose services."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.parse.interpolation import interpolate_compose
from planner.parse.launchers import read_words
from planner.parse.model import ContainerFacts, EnvHow, Token
from planner.parse.nodes import Listing, Mapping, Scalar, Tree
from planner.parse.recipe import env_items
from planner.parse.resources import size_bytes, whole_number
from planner.parse.setting import Collector, EnvItem, Setting
from planner.parse.source import Field, Mapped
from planner.parse.state import State
from planner.parse.words import expand

__all__ = ["image_token", "read_compose", "split_string"]


def read_compose(tree: Mapping, setting: Setting, out: Collector, depth: int) -> None:
    """Adds the launches of every service."""
    services = tree.get("services")
    for key, service in services.pairs() if isinstance(services, Mapping) else ():
        if isinstance(service, Mapping):
            _service(key.text, service, setting, out, depth)


def _service(name: str, service: Mapping, setting: Setting, out: Collector, depth: int) -> None:
    items = [_interpolated(item) for item in env_items(service.get("environment"), EnvHow.CONTAINER)]
    inside = replace(setting.named(name), container=_facts(service)).with_env(items)
    words = [*_words(service.get("entrypoint")), *_words(service.get("command"))]
    if words:
        found = read_words(words, inside, out, depth, site=service.start)
        if not found and words[0].shown.startswith("--model"):
            image = inside.container.image if inside.container is not None else None
            if image is not None and "sglang" in (image.text or image.raw):
                flags_only(words, inside, out, service.start)


def flags_only(words: list[Field], setting: Setting, out: Collector, site: int) -> None:
    """Flags for an image whose entry point is the server."""
    from planner.parse.model import Launcher
    from planner.parse.setting import Draft

    out.add(Draft(Launcher.LAUNCH_SERVER, (), tuple(words), setting, words[0].start, words[-1].end, site=site))


def _interpolated(item: EnvItem) -> EnvItem:
    chars, by_default = interpolate_compose(item.value.chars)
    layers = ("compose", *item.value.layers)
    return replace(item, value=replace(item.value, chars=chars, by_default=by_default, layers=layers))


def _words(tree: Tree | None) -> list[Field]:
    if isinstance(tree, Listing):
        fields = []
        for item in tree.items:
            if isinstance(item, Scalar):
                chars, by_default = interpolate_compose(item.value)
                field = item.field()
                layers = ("compose", *item.layers)
                fields.append(replace(field, chars=chars.under("compose"), by_default=by_default, layers=layers))
        return fields
    if isinstance(tree, Scalar) and tree.kind != "null":
        return split_string(tree.value)
    return []


def split_string(value: Mapped) -> list[Field]:
    """The words of a command string that no shell runs: quotes count, a line end is a blank."""
    chars, _ = interpolate_compose(value)
    text = chars.text.replace("\\\n", "  ").replace("\n", " ")
    return split_words(replace(chars.under("compose"), text=text))


def split_words(chars: Mapped) -> list[Field]:
    """Words at blanks outside of quotes."""
    text, at, fields = chars.text, 0, []
    state = State()
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
            continue
        stop = _word_end(text, at)
        fields.extend(expand(replace(chars[at:stop], text=text[at:stop]), state))
        at = stop
    return fields


def _word_end(text: str, at: int) -> int:
    quote = ""
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\" and quote == '"':
                at += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char == "\\":
            at += 1
        elif char in " \t\r\n":
            return at
        at += 1
    return len(text)


def image_token(scalar: Scalar) -> Token:
    """The image, with compose defaults filled in; its lines come later."""
    chars, by_default = interpolate_compose(scalar.value)
    text = None if chars.has_hole else chars.text
    return Token(
        text,
        scalar.text,
        *(0, 0, 0, 0),
        known=text is not None,
        start=scalar.start,
        end=scalar.end,
        by_default=by_default,
        layers=scalar.layers,
    )


def _facts(service: Mapping) -> ContainerFacts:
    image = service.get("image")
    facts: dict[str, Any] = {}
    if isinstance(image, Scalar) and image.kind != "null":
        facts["image"] = image_token(image)
    facts["shm_bytes"] = size_bytes(service.text("shm_size"))
    facts["ipc_host"] = service.text("ipc") == "host"
    facts["network_host"] = service.text("network_mode") == "host"
    facts["privileged"] = service.text("privileged") == "true"
    facts["gpus"], facts["n_gpus"] = _gpus(service)
    mounts: list[Tree] = []
    for holder in (service.get("volumes"), service.get("tmpfs")):
        mounts += holder.items if isinstance(holder, Listing) else [holder] if holder is not None else []
    facts["shm_mounted"] = any(
        "/dev/shm" in (mount.text if isinstance(mount, Scalar) else str(mount.text("target") or ""))
        for mount in mounts
        if isinstance(mount, Scalar | Mapping)
    )
    return ContainerFacts(**facts)


def _gpus(service: Mapping) -> tuple[str | None, int | None]:
    direct = service.text("gpus")
    if direct is not None:
        return direct, whole_number(direct)
    node: Tree | None = service
    for key in ("deploy", "resources", "reservations", "devices"):
        node = node.get(key) if isinstance(node, Mapping) else None
    if not isinstance(node, Listing):
        return None, None
    for device in node.items:
        if isinstance(device, Mapping):
            ids = device.get("device_ids")
            if isinstance(ids, Listing):
                texts = [item.text for item in ids.items if isinstance(item, Scalar)]
                return "device=" + ",".join(texts), len(texts)
            count = device.text("count")
            if count is not None:
                return count, whole_number(count)
    return None, None
