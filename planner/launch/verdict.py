"""What a launch can end with. A cause is a slug of ``planner.diagnose`` or one of :class:`Cause`."""

from __future__ import annotations

from enum import StrEnum

from planner.domain import Observation, Value

__all__ = ["Cause", "JudgedError", "LaunchReport", "Mismatch", "Stage", "StageReport"]


class Cause(StrEnum):
    """Causes that only the launcher can see. Those of the server's log are the slugs of ``planner.diagnose``."""

    OK = "ok"
    NEVER_READY = "never-ready"
    """Alive until the time limit, never answered ready."""
    UNHEALTHY = "unhealthy-503"
    """Answered, but with 503 until the time limit."""
    EXITED = "exited"
    """Ended before it was ready and its log does not say why."""
    DIED_SERVING = "died-serving"
    """Ended after it was ready and its log does not say why."""
    START_FAILED = "start-failed"
    HANG_GENERATION = "hang-generation"
    """Accepts requests and never answers them."""
    SLOW_ANSWER = "slow-answer"
    """Answers so slowly that the time limit of a call passed while bytes still came."""
    BAD_ANSWER = "bad-answer"
    """An answer that cannot be read: truncated JSON, a field missing, not HTTP."""
    REQUEST_REFUSED = "request-refused"
    """A request of the canary was refused with an HTTP status."""
    CONNECTION_LOST = "connection-lost"
    """The connection closed in the middle of an answer while the server lives."""
    WRONG_SETTINGS = "wrong-settings"
    """What runs is not what the plan says."""
    WRONG_ANSWER = "wrong-answer"
    """Readable text whose checked answers are wrong."""
    NO_PREFIX_HIT = "no-prefix-hit"
    """The same long prompt twice, and nothing came from the cache although the cache is on."""
    DISK_FULL = "disk-full"
    SHM_SMALL = "shm-too-small"
    LOG_LOST = "log-lost"
    """Lines of the log could not be written."""
    HOST_LOST = "ssh-lost"
    SUPERVISOR_LOST = "supervisor-lost"
    BENCH_FAILED = "bench-failed"
    LEDGER_LOCKED = "ledger-locked"
    INTERRUPTED = "interrupted"


class Stage(StrEnum):
    """Stages of a launch, in order."""

    PREFLIGHT = "preflight"
    START = "start"
    ALIVE = "alive"
    HEALTH = "health"
    SETTINGS = "settings"
    CANARY = "canary"
    BENCH = "bench"
    SOAK = "soak"
    SERVE = "serve"
    STOP = "stop"


class StageReport(Value):
    """One stage that ended."""

    stage: Stage
    ok: bool
    took_s: float
    note: str = ""


class Mismatch(Value):
    """A setting that is not what was asked for."""

    field: str
    expected: str
    actual: str
    note: str = ""


class LaunchReport(Value):
    """The answer of ``plan-config launch``."""

    schema_version: int = 1
    ok: bool
    cause: str
    detail: str = ""
    stage: Stage
    """The last stage reached."""
    stages: tuple[StageReport, ...] = ()
    base_url: str
    argv: tuple[str, ...]
    """Secrets hidden."""
    pid: int | None = None
    log: str | None = None
    log_digest: str | None = None
    engine_version: str | None = None
    mismatches: tuple[Mismatch, ...] = ()
    canary: tuple[tuple[str, float], ...] = ()
    """Figures of the canary by name."""
    diagnosis_cause: str | None = None
    diagnosis_lines: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    observations: tuple[Observation, ...] = ()
    notes: tuple[str, ...] = ()
    serving: bool = False
    """Whether the server runs on after this report."""
    left_behind: int = 0
    """Processes of the server that could not be ended; always 0 unless the host was lost."""


class JudgedError(Exception):
    """A stage failed: carries the cause. Internal to the launch room; becomes a :class:`LaunchReport`."""

    def __init__(self, cause: str, detail: str, *, stage: Stage | None = None) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = str(cause)
        self.detail = detail
        self.stage = stage
