"""``docker run`` and its kin: image, environment, GPUs and shared memory, and the command inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.parse.model import ContainerFacts, EnvHow, Token
from planner.parse.resources import gpu_count, size_bytes
from planner.parse.setting import EnvItem, Setting
from planner.parse.source import HOLES, Field

__all__ = ["is_container_run", "read_container_run", "with_image"]

_ENGINES = frozenset({"docker", "podman", "nerdctl", "nvidia-docker"})
_SINGULAR = frozenset({"apptainer", "singularity"})
_BARE_WORDS = """
-d --detach -i --interactive -t --tty -it -ti -dit -itd -id -di -td -dt --rm --privileged --init -P
--publish-all --read-only --no-healthcheck --oom-kill-disable --sig-proxy --disable-content-trust -q --quiet
--replace --nv --nvccli --rocm --cleanenv --containall --contain --writable --writable-tmpfs --fakeroot
--no-home --unsquash --tls-verify --rmi -dti -tid -tdi -idt
"""
_BARE = frozenset(_BARE_WORDS.split())


def is_container_run(words: Sequence[Field], at: int) -> bool:
    """Whether ``words[at]`` begins a ``docker run``, ``docker exec`` or ``apptainer exec``."""
    if at + 1 >= len(words):
        return False
    base, verb = words[at].shown.rsplit("/", 1)[-1], words[at + 1].shown
    if base in _ENGINES:
        return verb in ("run", "exec", "create") or (
            verb == "container" and at + 2 < len(words) and words[at + 2].shown in ("run", "exec", "create")
        )
    return base in _SINGULAR and verb in ("exec", "run")


def with_image(setting: Setting, word: Field, skip: int) -> Setting:
    """The setting inside the image that ``word`` names from its ``skip``-th character on."""
    chars = word.chars[skip:]
    if not chars.text:
        return setting
    facts = setting.container or ContainerFacts()
    start, end = chars.span(0, len(chars.text))
    return replace(setting, container=replace(facts, image=_image_token(Field(chars, start, end, layers=word.layers))))


def read_container_run(words: Sequence[Field], at: int, setting: Setting) -> tuple[Sequence[Field], Setting]:
    """The command inside the container and the setting around it."""
    index = at + 2 + (words[at + 1].shown == "container")
    verb = words[index - 1].shown
    facts = setting.container or ContainerFacts()
    items: list[EnvItem] = []
    entrypoint: list[Field] = []
    name = setting.name
    while index < len(words):
        word = words[index]
        shown = word.shown
        if not shown.startswith("-"):
            if all(char in HOLES for char in shown) and _more_options(words, index + 1):
                index += 1
                continue
            break
        option, equals, _ = shown.partition("=")
        index += 1
        if shown in _BARE or option in _BARE:
            facts = replace(facts, privileged=True) if shown == "--privileged" else facts
            continue
        skip = len(option) + 1 if equals and option.startswith("--") else 0
        if not option.startswith("--") and len(shown) > 2:
            option, skip = shown[:2], 2 + (shown[2:3] == "=")
        if not skip:
            if index >= len(words):
                break
            word, index = words[index], index + 1
        value = replace(word, chars=word.chars[skip:])
        if option in ("-e", "--env"):
            item = assignment_of(word, skip)
            if item is not None:
                items.append(item)
        elif option == "--entrypoint":
            entrypoint = [value]
        elif option == "--name":
            name = value.text
        else:
            facts = _with_option(facts, option, value)
    singular = words[at].shown.rsplit("/", 1)[-1] in _SINGULAR
    if index < len(words) and (singular or verb != "exec"):
        facts = replace(facts, image=_image_token(words[index]))
    # A container sees the variables that it is given, not those of the calling shell.
    env = setting.env if singular else ()
    inside = replace(setting, container=facts, env=env).with_env(items).named(name)
    return [*entrypoint, *words[index + 1 :]], inside


def assignment_of(word: Field, skip: int) -> EnvItem | None:
    """The variable of ``-e NAME=value``; ``-e NAME`` passes a value of the host, which the file does not say."""
    from planner.parse.launchers import assignment

    return assignment(word, EnvHow.CONTAINER, skip)


def _more_options(words: Sequence[Field], index: int) -> bool:
    """Whether an unknown word among the options is followed by another option or by the image."""
    if index >= len(words):
        return False
    shown = words[index].shown
    if shown.startswith("-"):
        return True
    following = words[index + 1].shown if index + 1 < len(words) else ""
    starts = ("python", "python3", "sglang", "bash", "sh", "env", "sleep")
    return shown.rsplit("/", 1)[-1] not in starts and following.rsplit("/", 1)[-1] in starts


def _image_token(word: Field) -> Token:
    """A token without lines: the caller's document completes it."""
    text = word.text
    return Token(text, word.shown, 0, 0, 0, 0, text is not None, word.start, word.end, layers=word.layers)


def _with_option(facts: ContainerFacts, option: str, value: Field) -> ContainerFacts:
    text = value.text
    change: dict[str, Any] = {}
    if option == "--gpus":
        change = {"gpus": None if text is None else text.strip("\"'"), "n_gpus": gpu_count(text)}
    elif option == "--shm-size":
        change = {"shm_bytes": size_bytes(text)}
    elif option in ("--ipc", "--network", "--net") and text == "host":
        change = {"ipc_host": True} if option == "--ipc" else {"network_host": True}
    elif option in ("-v", "--volume", "--mount", "--tmpfs", "-B", "--bind") and text is not None:
        places = text.replace(",", ":").split(":")
        if any(place.split("=")[-1] == "/dev/shm" for place in places):
            change = {"shm_mounted": True}
    return replace(facts, **change) if change else facts
