"""The catalogue of causes and the signatures, read once from ``planner/data/diagnose``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from planner.data.files import read_text
from planner.diagnose.model import NotThis

__all__ = ["Cause", "Marker", "Role", "Signature", "causes", "markers", "prefilter", "signatures", "traits"]


class Role(StrEnum):
    """What a signature says about the cause."""

    ROOT = "root"
    GENERIC = "generic"
    SYMPTOM = "symptom"
    CONSEQUENCE = "consequence"


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of causes.toml."""

    slug: str
    title: str
    why: str
    asynchronous: bool
    explains: frozenset[str]
    not_: tuple[NotThis, ...]
    remedies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """One entry of signatures.toml, compiled."""

    id: str
    cause: str
    """A slug, or ``@family``: resolved by context."""
    role: Role
    soft: bool
    strength: float
    exception: bool
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None

    def matches(self, line: str) -> bool:
        """Whether the line shows this signature (exception gating is the caller's)."""
        if not any(trigger in line for trigger in self.triggers) or self.pattern.search(line) is None:
            return False
        return self.unless is None or self.unless.search(line) is None


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker or trait of markers.toml, compiled."""

    name: str
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]

    def matches(self, line: str) -> bool:
        """Whether the line holds it."""
        return any(trigger in line for trigger in self.triggers) and self.pattern.search(line) is not None


@cache
def causes() -> dict[str, Cause]:
    """Causes by slug, in the order of the file."""
    table = tomllib.loads(read_text("diagnose/causes.toml"))
    return {
        entry["slug"]: Cause(
            slug=entry["slug"],
            title=entry["title"],
            why=entry["why"],
            asynchronous=entry.get("asynchronous", False),
            explains=frozenset(entry.get("explains", ())),
            not_=tuple(NotThis(slug=item["slug"], reason=item["reason"]) for item in entry.get("not", ())),
            remedies=tuple(entry["remedies"]),
        )
        for entry in table["cause"]
    }


@cache
def signatures() -> tuple[Signature, ...]:
    """All signatures, in the order of the file."""
    table = tomllib.loads(read_text("diagnose/signatures.toml"))
    return tuple(
        Signature(
            id=entry["id"],
            cause=entry["cause"],
            role=Role(entry["role"]),
            soft=entry.get("soft", False),
            strength=float(entry["strength"]),
            exception=entry.get("exception", False),
            triggers=tuple(entry["triggers"]),
            pattern=re.compile(entry["pattern"]),
            unless=re.compile(entry["unless"]) if "unless" in entry else None,
        )
        for entry in table["signature"]
    )


@cache
def _marker_table() -> tuple[tuple[Marker, ...], tuple[Marker, ...]]:
    table = tomllib.loads(read_text("diagnose/markers.toml"))
    return (
        tuple(Marker(e["event"], tuple(e["triggers"]), re.compile(e["pattern"])) for e in table["marker"]),
        tuple(Marker(e["name"], tuple(e["triggers"]), re.compile(e["pattern"])) for e in table["trait"]),
    )


def markers() -> tuple[Marker, ...]:
    """Events that say how far the server is."""
    return _marker_table()[0]


def traits() -> tuple[Marker, ...]:
    """Words and frames that say what the server was doing."""
    return _marker_table()[1]


@cache
def prefilter(extra: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """One regular expression that finds any trigger (or ``extra``) in a line: a trie, so that a byte is tried once."""
    triggers = [item.triggers for item in signatures()] + [item.triggers for item in (*markers(), *traits())]
    words = {trigger.encode() for group in triggers for trigger in group} | set(extra)
    shortest = {word for word in words if not any(other != word and other in word for other in words)}
    return re.compile(_trie(sorted(shortest)))


def _trie(words: list[bytes]) -> bytes:
    if words == [b""] or b"" in words:
        return b""
    heads: dict[bytes, list[bytes]] = {}
    for word in words:
        heads.setdefault(word[:1], []).append(word[1:])
    parts = [re.escape(head) + _trie(tails) for head, tails in heads.items()]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"
