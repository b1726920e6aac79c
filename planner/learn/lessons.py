"""What runs teach, put together: known limits revised, new ones proposed, and everything that stays open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.domain import HardwareProfile, Limit, ModelProfile
from planner.learn.propose import Proposals, Run, propose_limits
from planner.learn.revise import Revised, revise_limits

__all__ = ["Lessons", "learn_from"]


@dataclass(frozen=True, slots=True)
class Lessons:
    """Proposals and open ends of some runs."""

    runs: tuple[Run, ...]
    revised: Revised
    proposals: Proposals
    left_out: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is proposed."""
        return not self.revised.revisions and not self.proposals.limits

    def lines(self) -> list[str]:
        """The answer as text, without the diff."""
        n_good = sum(run.ok for run in self.runs)
        found = [f"{len(self.runs)} runs: {n_good} ran well, {len(self.runs) - n_good} failed"]
        for revision in self.revised.revisions:
            found.append(f"MOVED {revision.before.id}: {'; '.join(revision.why)}")
        for limit in self.proposals.limits:
            scope = ", ".join(f"{name}={value}" for name, value in limit.when.model_dump(exclude_none=True).items())
            found.append(
                f"NEW {limit.id}: {limit.quantity} good {limit.known_good:g}, bad {limit.known_bad:g}, "
                f"{limit.status.value}, {limit.consequence.value} ({scope})"
            )
            found.append(f"  from {', '.join(self.proposals.explained[limit.id])}")
            if limit.confidence_note:
                found.append(f"  {limit.confidence_note}")
        for id_, refs in self.revised.confirmed:
            found.append(f"CONFIRMED {id_}: {', '.join(refs)}")
        found += [f"NOT THE CAUSE {text}" for text in self.proposals.exonerated]
        for pair in self.proposals.contradictions:
            found.append("CONTRADICTION, the same launch on the same engine:")
            found.append(f"  {pair.good.ref}: {pair.good.outcome}")
            found.append(f"  {pair.bad.ref}: {pair.bad.outcome}")
        found += [f"DISPUTED {text}" for text in self.revised.disputed]
        found += [f"FLAKY {ref}: failed without a known cause, ran well another time" for ref in self.proposals.flaky]
        for run in self.proposals.unexplained:
            found.append(f"UNEXPLAINED {run.ref}: {run.outcome}; no quantity separates it from the runs that went well")
        found += [f"left out: {text}" for text in self.left_out]
        return found


def learn_from(
    runs: Sequence[Run],
    limits: Sequence[Limit],
    *,
    hardware: HardwareProfile,
    model: ModelProfile,
    left_out: Sequence[str] = (),
) -> Lessons:
    """Revise ``limits`` and propose new ones for the failing runs that they do not foretell."""
    revised = revise_limits(limits, runs, hardware=hardware, model=model)
    open_ = {run.ref for run in revised.unexplained}
    proposals = propose_limits([run for run in runs if run.ok or run.ref in open_], hardware=hardware, model=model)
    whole = propose_limits(runs, hardware=hardware, model=model)
    # What a failure is not caused by, and what contradicts itself, is asked of all runs.
    proposals = Proposals(
        limits=proposals.limits,
        explained=proposals.explained,
        unexplained=proposals.unexplained,
        exonerated=whole.exonerated,
        contradictions=whole.contradictions,
        flaky=whole.flaky,
    )
    return Lessons(tuple(runs), revised, proposals, tuple(left_out))
