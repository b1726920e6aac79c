"""What a diagnosis is made of: the cause, the lines that show it, and what the log says about the run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainSerializer

from planner.domain import Value
from planner.domain.limit import LimitShape

__all__ = [
    "Confidence",
    "DecodePoint",
    "Diagnosis",
    "LogFacts",
    "LogLine",
    "NotThis",
    "Phase",
    "SecondaryCause",
    "SuggestedLimit",
]


class Phase(StrEnum):
    """How far the server came, in order."""

    START = "start"
    ARGUMENTS = "arguments"
    WEIGHTS = "weights"
    POOLS = "pools"
    CAPTURE = "capture"
    CAPTURED = "captured"
    LISTENING = "listening"
    READY = "ready"
    SERVING = "serving"
    STOPPED = "stopped"

    @property
    def rank(self) -> int:
        """Position in the order, from 0."""
        return list(Phase).index(self)


class Confidence(StrEnum):
    """Confidence in words: high from 0.8, medium from 0.5, low below."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @classmethod
    def of(cls, number: float) -> Confidence:
        """The word for a number from 0 to 1."""
        return cls.HIGH if number >= 0.8 else cls.MEDIUM if number >= 0.5 else cls.LOW


class LogLine(Value):
    """One line of the log, secrets hidden, cut to a readable length."""

    number: Annotated[int, Field(ge=1)]
    text: str


class NotThis(Value):
    """A cause that this one is taken for, and how to tell them apart."""

    slug: str
    reason: str


class SecondaryCause(Value):
    """Something else that the log shows: a consequence, a symptom, or a failure that the server survived."""

    slug: str
    line: LogLine
    role: str
    """``consequence``, ``symptom``, ``recovered`` or ``other``."""


class SuggestedLimit(Value):
    """A boundary that this log gives evidence for. It is one run's value: a person decides whether it is a limit."""

    id: str
    quantity: str
    """A named quantity or a field of the engine."""
    shape: LimitShape
    value: float
    """The value in this run."""
    known_good: float | None = None
    known_bad: float | None = None
    note: str = ""


class DecodePoint(Value):
    """One decode (or metrics) line."""

    line: int
    at_s: float | None = None
    """Seconds since 1970 of the line's own clock, taken as UTC."""
    running_req: int
    queue_req: int | None = None
    used_frac: float | None = None
    """Token usage of the KV pool."""
    accept_len: float | None = None
    gen_tok_per_s: float | None = None
    graph: bool | None = None


def _pairs_to_dict(pairs: tuple[tuple[str, object], ...]) -> dict[str, object]:
    return dict(pairs)


ServerArgPairs = Annotated[
    tuple[tuple[str, bool | int | float | str | None], ...],
    PlainSerializer(_pairs_to_dict, return_type=dict[str, object]),
]


class LogFacts(Value):
    """What the log says about the run, whatever the cause. None: the log does not say."""

    engine: str | None = None
    """``sglang`` or ``vllm``."""
    engine_version: str | None = None
    phase: Phase = Phase.START
    n_lines: int = 0
    n_runs: int = 1
    """Server starts in this log; the facts are those of the last one."""
    server_args: ServerArgPairs = ()
    """Scalar fields of the server_args line."""
    speculative: bool | None = None
    max_running_requests_asked: int | None = None
    max_running_requests: int | None = None
    """Effective, per attention-DP worker."""
    max_total_num_tok: int | None = None
    context_len: int | None = None
    captured_batch_sizes: tuple[int, ...] = ()
    """Batch sizes of the decode (or verify) graphs, ascending."""
    capturing_batch_size: int | None = None
    """Batch size whose capture began last."""
    num_tokens_per_req: int | None = None
    """Tokens that one graph row block runs per request (q_len)."""
    n_decode_lines: int = 0
    decode: tuple[DecodePoint, ...] = ()
    """Decode lines, evenly thinned to at most 2048."""
    max_running_req: int | None = None
    accept_len_full_batch: float | None = None
    """Median accept length of the decode lines that run at least 90 % of the largest batch seen."""
    n_full_batch: int = 0
    n_prefill_lines: int = 0
    prefill_new_tok: int = 0
    prefill_cached_tok: int = 0
    prefill_new_seq: int = 0
    """Sums over the prefill lines read (all of them up to 20000, then one in 16)."""
    n_requests_ok: int = 0
    """Access-log lines with status 200."""

    @property
    def args(self) -> dict[str, bool | int | float | str | None]:
        """``server_args`` as a dictionary."""
        return dict(self.server_args)

    @property
    def prefix_hit_frac(self) -> float | None:
        """Share of prompt tokens that came from the prefix cache."""
        total = self.prefill_new_tok + self.prefill_cached_tok
        return self.prefill_cached_tok / total if total else None


class Diagnosis(Value):
    """The answer to a log."""

    cause: str
    """Slug of the catalogue (docs/diagnose.md)."""
    title: str
    confidence: Annotated[float, Field(ge=0, le=1)]
    level: Confidence
    lines: tuple[LogLine, ...] = ()
    not_: tuple[NotThis, ...] = Field(default=(), serialization_alias="not")
    remedies: tuple[str, ...] = ()
    suggested_limit: SuggestedLimit | None = None
    why: str = ""
    phase: Phase = Phase.START
    """Phase in which the cause showed itself."""
    asynchronous: bool = False
    """True when the error surfaces far from its cause, so that the frame or library that reports it is a victim."""
    secondary: tuple[SecondaryCause, ...] = ()
    notes: tuple[str, ...] = ()
    engine_version: str | None = None
    facts: LogFacts = LogFacts()

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong as far as a log can show."""
        return self.cause == "healthy"

    def to_json(self) -> dict[str, object]:
        """JSON form; the keys are the fields' names, ``not_`` is ``not``."""
        return self.model_dump(mode="json", by_alias=True)
