"""Turns the hits of a run into candidate causes: families (``@oom`` ...) are resolved by what the server was doing."""

from __future__ import annotations

from dataclasses import dataclass

from planner.diagnose.catalogue import Role
from planner.diagnose.events import Hit, Run
from planner.diagnose.facts import FactReader
from planner.diagnose.model import Phase

__all__ = ["Candidate", "candidates", "speculates"]

UNSURE = 0.7
"""Factor on the strength when the context had to be guessed."""


_OF_THE_DRAFT = {
    "weights-uninitialised": "mtp-weights-missing",
    "weight-names": "spec-option-incompatible",
    "architecture": "spec-option-incompatible",
}
"""What a signature means when the draft worker is being built: the draft does not belong to this target."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One cause that one hit speaks for."""

    slug: str
    role: Role
    soft: bool
    strength: float
    hit: Hit
    guessed: bool = False

    @property
    def line(self) -> int:
        """Number of the line that shows it."""
        return self.hit.line.number


def speculates(run: Run, facts: FactReader) -> bool | None:
    """Whether the run speculates; None when nothing says so."""
    if facts.speculative is not None:
        return facts.speculative
    return True if "spec" in run.traits else None


def candidates(run: Run, facts: FactReader) -> list[Candidate]:
    """Candidates in the order of the log. A hit that its context contradicts gives none."""
    found: list[Candidate] = []
    for hit in run.hits:
        slug, guessed = _resolve(hit, run, facts)
        if slug is None:
            continue
        strength = hit.strength * (UNSURE if guessed else 1.0)
        found.append(Candidate(slug, hit.signature.role, hit.signature.soft, strength, hit, guessed))
    return found


def _context(hit: Hit, run: Run) -> set[str]:
    """Traits of the traceback the hit stands in (without one: of the lines before it), else of the next one."""
    around = set(hit.block.traits) if hit.block.id else set(hit.near) - {"capture"}
    if not around & {"capture", "replay", "runtime", "init", "args"}:
        after = run.block_after(hit.block)
        if after is not None and after.line - hit.line.number <= 60:
            around |= after.traits
        elif hit.block.id == 0:
            around |= {name for name, line in run.traits.items() if 0 < line - hit.line.number <= 60}
    return around | hit.own


def _resolve(hit: Hit, run: Run, facts: FactReader) -> tuple[str | None, bool]:
    cause = hit.signature.cause
    context = _context(hit, run)
    if cause == "@oom":
        return _oom(hit, context)
    if cause == "@illegal-address":
        return _illegal_address(hit, context, speculates(run, facts))
    if cause == "@launch":
        place = _place(hit, context)
        if place is None:
            return "kernel-launch-failed-capture", True
        return ("kernel-launch-failed-capture" if place == "capture" else "kernel-launch-failed-runtime"), False
    if cause == "@moe-unquantized":
        spec = speculates(run, facts)
        return ("moe-backend-mismatch", False) if spec is False else ("draft-moe-mismatch", spec is None)
    if cause == "@none-metadata":
        return _none_metadata(hit, context)
    if cause == "moe-backend-mismatch" and "draft-init" in context:
        return "draft-moe-mismatch", False
    if "draft-init" in context and (slug := _OF_THE_DRAFT.get(hit.signature.id)) is not None:
        return slug, True
    return cause, False


def _place(hit: Hit, context: set[str]) -> str | None:
    """``capture``, ``runtime``, ``init`` or None: frames first, then the phase, then words nearby."""
    if "capture" in hit.own or ("capture" in context and "replay" not in context):
        return "capture"
    if "runtime" in context or "replay" in context:
        return "runtime"
    if hit.in_capture:
        return "capture"
    if hit.phase.rank >= Phase.READY.rank:
        return "runtime"
    if "init" in context or hit.phase in (Phase.WEIGHTS, Phase.POOLS):
        return "init"
    if "capture" in hit.near:
        return "capture"
    return None


def _oom(hit: Hit, context: set[str]) -> tuple[str, bool]:
    place = _place(hit, context)
    if place == "capture":
        return "oom-capture", False
    if place == "runtime":
        return "oom-runtime", False
    if place is None and hit.served_before:
        return "oom-runtime", False
    if place is None and "private pools (e.g., CUDA Graphs)" in hit.line.text:
        return "oom-runtime", True
    return "oom-startup", place is None


def _illegal_address(hit: Hit, context: set[str], spec: bool | None) -> tuple[str, bool]:
    place = _place(hit, context)
    if place == "capture":
        return "cuda-illegal-address-capture", False
    spec_here = spec is not False and (spec or "spec" in context or "spec" in hit.near)
    replay = "replay" in context or "replay" in hit.own or (place != "init" and "replay" in hit.near)
    if spec_here and replay:
        return "cuda-illegal-address-spec-replay", False
    if spec_here:
        return "cuda-illegal-address-spec", place is None
    return "cuda-illegal-address", place is None


def _none_metadata(hit: Hit, context: set[str]) -> tuple[str | None, bool]:
    """A None in attention metadata: the backend was not prepared for this mode. The bare line is weak evidence."""
    if "attention" in context:
        return "attn-backend-mismatch", False
    if hit.block.id == 0 and "Tensor" in hit.line.text:
        return "attn-backend-mismatch", True
    return None, False
