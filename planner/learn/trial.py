"""One thing to run and what came of it; and whoever can run it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Protocol

from planner.domain import Candidate, Value
from planner.domain.describe import draft_words

__all__ = ["FLAKY_CAUSES", "Knobs", "Result", "Runner", "Trial", "knobs_of"]

Knobs = tuple[tuple[str, str], ...]
"""``(name, value)`` of every setting that a trial may change, sorted by name."""

FLAKY_CAUSES = frozenset({"exited", "unknown", "died-serving", "collective-timeout", "never-ready", "nccl-error"})
"""Causes that a start may fail with by itself."""

CANDIDATE_KNOBS = (
    "tp_size",
    "ep_size",
    "attention_dp_size",
    "max_running_requests",
    "cuda_graph",
    "enable_nccl_nvls",
    "allreduce_fusion",
    "attention_backend",
    "kv_cache_dtype",
    "mem_fraction_static",
)
"""Fields of a candidate that are settings of their own; the rest follows from them."""


class Trial(Value):
    """One launch to try: a command line and the knobs in which it differs from the others."""

    id: str
    """Digest of argv and environment: the same launch has the same id."""
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    knobs: Knobs
    candidate: Candidate | None = None

    @classmethod
    def of(
        cls,
        argv: tuple[str, ...],
        *,
        knobs: Mapping[str, str],
        env: tuple[tuple[str, str], ...] = (),
        candidate: Candidate | None = None,
    ) -> Trial:
        """A trial with its id."""
        text = json.dumps([list(argv), [list(pair) for pair in env]])
        return cls(
            id=hashlib.sha256(text.encode()).hexdigest()[:16],
            argv=argv,
            env=env,
            knobs=tuple(sorted(knobs.items())),
            candidate=candidate,
        )

    def changed_from(self, other: Trial) -> tuple[str, ...]:
        """Names of the knobs in which two trials differ."""
        mine, theirs = dict(self.knobs), dict(other.knobs)
        return tuple(sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)))


class Result(Value):
    """What came of one launch."""

    ok: bool
    cause: str
    """``ok`` or the slug of a diagnosis."""
    detail: str = ""
    tok_per_s: float | None = None
    took_s: float = 0.0
    launched: bool = True
    """False: refused before anything was started."""
    observations: tuple[str, ...] = ()
    """Ids in the ledger."""


class Runner(Protocol):
    """Runs one trial to its end and leaves nothing behind."""

    def run(self, trial: Trial, attempt: int) -> Result:
        """``attempt`` counts the runs of this trial from 1."""
        ...


def knobs_of(candidate: Candidate) -> dict[str, str]:
    """The knobs of a candidate. The draft is one: its form, budget and width only make sense together."""
    values = ((name, getattr(candidate, name)) for name in CANDIDATE_KNOBS)
    return {"draft": draft_words(candidate), **{name: str(value) for name, value in values}}
