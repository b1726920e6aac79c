"""What the reader keeps of a run: hits of signatures with their surroundings, and milestones. All of it bounded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from planner.diagnose.catalogue import Signature
from planner.diagnose.model import LogLine, Phase

__all__ = ["Block", "Hit", "Run"]

MAX_HITS = 200
MAX_BLOCKS = 300
NEAR_LINES = 30


@dataclass(slots=True)
class Block:
    """A traceback (or the lines outside any): the traits seen in it."""

    id: int
    line: int
    traits: set[str] = field(default_factory=set)
    phase: Phase = Phase.START


@dataclass(slots=True)
class Hit:
    """The first of a signature's matches in one block and phase, and how many followed."""

    signature: Signature
    line: LogLine
    phase: Phase
    in_capture: bool
    block: Block
    own: frozenset[str]
    """Traits of the line itself."""
    near: frozenset[str]
    """Traits seen in the NEAR_LINES lines before, outside tracebacks."""
    strength: float
    served_before: int
    count: int = 1
    last: int = 0


@dataclass(slots=True)
class Run:
    """One server start."""

    first_line: int
    phase: Phase = Phase.START
    n_capture_begun: int = 0
    n_capture_ended: int = 0
    ready_line: int | None = None
    first_ready_line: int | None = None
    stopping_line: int | None = None
    fatal_lines: list[int] = field(default_factory=list)
    last_fatal_line: int | None = None
    fatal_line: LogLine | None = None
    n_served: int = 0
    """Decode, prefill and 200 lines: signs of life."""
    served_at_last_fatal: int = 0
    hits: list[Hit] = field(default_factory=list)
    by_key: dict[tuple[str, int, Phase], Hit] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    blocks: deque[Block] = field(default_factory=lambda: deque(maxlen=MAX_BLOCKS))
    traits: dict[str, int] = field(default_factory=dict)
    """Last line of each trait."""
    exception: LogLine | None = None
    """The last exception line that no signature knows, of a traceback."""
    exception_phase: Phase = Phase.START
    exception_in_capture: bool = False
    degenerate: LogLine | None = None
    """An answer that repeats itself."""

    @property
    def in_capture(self) -> bool:
        """Whether a graph capture has begun and not ended."""
        return self.phase is Phase.CAPTURE

    def seen_again(self, signature_id: str, block: Block, number: int) -> bool:
        """Count one more of a hit that is kept already for this block and phase; False when it is new."""
        known = self.by_key.get((signature_id, block.id, self.phase))
        if known is None:
            return False
        known.count += 1
        known.last = number
        self.counts[signature_id] = self.counts.get(signature_id, 0) + 1
        return True

    def add(self, hit: Hit) -> None:
        """Keep a hit, or count it when its like is kept already."""
        signature = hit.signature
        if self.seen_again(signature.id, hit.block, hit.line.number):
            return
        key = (signature.id, hit.block.id, hit.phase)
        self.counts[signature.id] = self.counts.get(signature.id, 0) + 1
        if len(self.hits) >= MAX_HITS:
            same = [kept for kept in self.hits if kept.signature is signature]
            if same:
                same[-1].count += 1
                same[-1].last = hit.line.number
                return
            if len(self.hits) >= 2 * MAX_HITS:
                return
        hit.last = hit.line.number
        self.by_key[key] = hit
        self.hits.append(hit)

    def block_after(self, block: Block) -> Block | None:
        """The traceback that began after ``block``, when it is still kept."""
        return next((kept for kept in self.blocks if kept.id == block.id + 1), None)
