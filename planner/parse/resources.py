"""Sizes as launch files write them: ``32g``, ``16Gi``, ``gpu:8``, ``device=0,1``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from planner.parse.model import JobFacts

__all__ = ["gpu_count", "job_facts", "merge_jobs", "size_bytes", "whole_number"]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)b?\s*", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NUMBER = re.compile(r"\s*\d{1,9}\s*")


def size_bytes(text: str | None, *, binary: bool = True) -> int | None:
    """Bytes of a size, or None. Docker counts ``g`` as 2**30; Kubernetes counts ``G`` as 10**9 and ``Gi`` as 2**30."""
    match = _SIZE.fullmatch(text) if text and len(text) < 32 else None
    if match is None:
        return None
    base = 1024 if binary or match.group(3) else 1000
    return int(float(match.group(1)) * base ** _POWER[match.group(2).lower()])


def whole_number(text: str | None) -> int | None:
    """The number that ``text`` is, or None."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) and text.isascii() else None


def gpu_count(text: str | None) -> int | None:
    """GPUs of a docker ``--gpus`` value: a count or a device list. ``all`` has no number."""
    if text is None:
        return None
    text = text.strip("\"' ")
    number = whole_number(text)
    if number is not None:
        return number
    match = re.search(r"device=([\w,.:-]+)", text)
    if match is not None:
        return len([part for part in match.group(1).split(",") if part])
    match = re.search(r"count=(\d{1,4})", text)
    return int(match.group(1)) if match else None


def job_facts(options: Sequence[str]) -> JobFacts | None:
    """What Slurm options say: nodes, GPUs and tasks of a node."""
    facts = JobFacts()
    index = 0
    while index < len(options):
        name, equals, value = options[index].partition("=")
        index += 1
        if not equals:
            short = re.fullmatch(r"-([NGn])(\d+)", name)
            if short is not None:
                name, value = f"-{short.group(1)}", short.group(2)
            elif index < len(options) and not options[index].startswith("-"):
                value = options[index]
        facts = _with_option(facts, name, value)
    return facts if facts != JobFacts() else None


def _with_option(facts: JobFacts, name: str, value: str) -> JobFacts:
    last = value.rsplit(":", 1)[-1]
    if name in ("-N", "--nodes"):
        return replace(facts, nodes=whole_number(value))
    if name in ("--gpus-per-node", "--gpus-per-task"):
        return replace(facts, gpus_per_node=whole_number(last))
    if name == "--gres" and value.startswith("gpu"):
        return replace(facts, gpus_per_node=whole_number(last.split("(")[0]))
    if name == "--ntasks-per-node":
        return replace(facts, tasks_per_node=whole_number(value))
    return facts


def merge_jobs(outer: JobFacts | None, inner: JobFacts | None) -> JobFacts | None:
    """The inner facts, completed by the outer ones."""
    if outer is None or inner is None:
        return inner or outer
    return JobFacts(
        nodes=inner.nodes if inner.nodes is not None else outer.nodes,
        gpus_per_node=inner.gpus_per_node if inner.gpus_per_node is not None else outer.gpus_per_node,
        tasks_per_node=inner.tasks_per_node if inner.tasks_per_node is not None else outer.tasks_per_node,
    )
