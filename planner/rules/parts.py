"""Parts of what a rule sees: flags and variables as written, faults found in reading, the container around a launch."""

from __future__ import annotations

from enum import StrEnum

from planner._record import record
from planner.rules.base import Place

__all__ = ["Container", "EnvVar", "FaultKind", "FlagFault", "Given", "WritingFault"]


class FaultKind(StrEnum):
    """What the engine's parser would say to one word of the command line."""

    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"
    ABBREVIATED = "abbreviated"
    BAD_CHOICE = "bad_choice"
    BAD_TYPE = "bad_type"
    MISSING_VALUE = "missing_value"
    POSITIONAL = "positional"
    DEPRECATED = "deprecated"
    IGNORED = "ignored"
    REFUSED = "refused"
    MISSING_REQUIRED = "missing_required"


@record()
class Given:
    """One flag as written. ``field`` is the argument it sets, None when no version knows it."""

    flag: str
    field: str | None
    value: str | None
    place: Place | None = None
    by_default: bool = False


@record()
class FlagFault:
    """A fault that reading the command line found. ``certain`` is False when another possible version accepts it."""

    kind: FaultKind
    flag: str
    message: str
    value: str | None = None
    options: tuple[str, ...] = ()
    place: Place | None = None
    certain: bool = True


@record()
class EnvVar:
    """A variable that the file sets. ``exported`` is False for a plain shell assignment."""

    name: str
    value: str | None
    exported: bool = True
    place: Place | None = None


@record()
class WritingFault:
    """A fault of writing that changes what the program receives. ``kind`` is the parser's own name for it."""

    kind: str
    message: str
    place: Place | None = None
    lost: tuple[str, ...] = ()


@record()
class Container:
    """Surroundings of a launch in a container."""

    kind: str
    image: str | None = None
    n_gpus: int | None = None
    shm_bytes: int | None = None
    shm_mounted: bool = False
    ipc_host: bool = False
