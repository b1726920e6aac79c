"""Reports of experiments as text: what was learned first, then what it took, then every run."""

from __future__ import annotations

from collections.abc import Sequence

from planner.learn.isolate import Isolation, Standing
from planner.learn.probe import Probe
from planner.learn.probing import ProbePlan
from planner.learn.sweep import Cost, SweepReport, Tried

__all__ = ["cost_line", "effects", "render_isolation", "render_probe", "render_sweep"]


def cost_line(cost: Cost) -> str:
    """Launches, minutes, GPU-hours."""
    word = "launch" if cost.n_launches == 1 else "launches"
    return f"{cost.n_launches} {word}, {cost.minutes:.1f} minutes, {cost.gpu_hours:.2f} GPU-hours"


def effects(tried: Sequence[Tried]) -> list[str]:
    """What one knob alone was worth, from measured trials that differ in nothing else; the largest first."""
    measured = [one for one in tried if one.tok_per_s is not None]
    found: list[tuple[float, str]] = []
    for number, one in enumerate(measured):
        for other in measured[number + 1 :]:
            changed = other.trial.changed_from(one.trial)
            if len(changed) != 1:
                continue
            gain = (other.tok_per_s or 0.0) / (one.tok_per_s or 1.0) - 1.0
            a, b = dict(one.trial.knobs).get(changed[0], "-"), dict(other.trial.knobs).get(changed[0], "-")
            found.append((abs(gain), f"{changed[0]}: {a} -> {b} is worth {gain:+.1%}"))
    return [text for _, text in sorted(found, reverse=True)]


def render_sweep(report: SweepReport, *, first: str | None = None) -> str:
    """A sweep."""
    lines = []
    best = report.best
    if best is None:
        lines.append("NOTHING RAN WELL")
    else:
        lines.append(f"BEST {best.tok_per_s:,.1f} tok/s ({len(best.results)} runs)".replace("(1 runs)", "(1 run)"))
        lines.append("  " + ", ".join(f"{name}={value}" for name, value in best.trial.knobs))
        lines.append("  " + " ".join(best.trial.argv))
        plan = next((one for one in report.tried if one.trial.id == first), None)
        if plan is not None and plan.trial.id != best.trial.id:
            if plan.tok_per_s is None:
                lines.append(f"  the plan it began with failed: {plan.results[-1].cause}")
            else:
                gain = (best.tok_per_s or 0.0) / plan.tok_per_s - 1.0
                lines.append(f"  {gain:+.1%} against the plan it began with ({plan.tok_per_s:,.1f} tok/s)")
    lines.append(f"took {cost_line(report.cost)}; ended because {report.why_stopped}")
    lines += [f"  note: {note}" for note in report.notes]
    learned = effects(report.tried)[:8]
    if learned:
        lines.append("learned, one knob at a time:")
        lines += [f"  {text}" for text in learned]
    lines.append("tried:")
    for one in report.tried:
        results = ", ".join(
            f"{result.tok_per_s:,.1f} tok/s" if result.tok_per_s is not None else result.cause for result in one.results
        )
        lines.append(f"  {one.trial.id}  {results}")
        lines.append("    " + ", ".join(f"{name}={value}" for name, value in one.trial.knobs))
        lines += [f"    {result.cause}: {result.detail}"[:200] for result in one.results if result.detail][:1]
    return "\n".join(lines) + "\n"


def render_probe(found: Probe, plan: ProbePlan, cost: Cost) -> str:
    """A probe."""
    bad = "-" if found.known_bad is None else f"{found.known_bad:g}"
    lines = [f"{plan.limit.id}: {plan.limit.quantity} good {found.known_good:g}, bad {bad}"]
    lines.append(f"  before: good {plan.good:g}, bad {plan.bad:g}")
    if found.known_bad == plan.bad:
        lines.append("  the bad end is that of the record: no launch below it failed")
    elif found.causes:
        lines.append(f"  at {bad}: {', '.join(found.causes)}")
    lines.append(f"took {cost_line(cost)}")
    lines += [f"  {note}" for note in (*plan.notes, *((found.note,) if found.note else ()))]
    lines += [f"  {value:g} failed and then ran: a flaky start, not a limit" for value in found.flaky]
    lines.append("tried:")
    for step in found.steps:
        lines.append(f"  {step.value:g}: {', '.join(result.cause for result in step.results)}")
    return "\n".join(lines) + "\n"


def render_isolation(found: Isolation, shown: dict[str, str], notes: Sequence[str], cost: Cost) -> str:
    """An isolation. ``shown`` is how a person writes each change."""
    lines = []
    if not found.causes:
        lines.append("NOT REPRODUCED: the launch with every change ran well")
    for cause in found.causes:
        lines.append("GUILTY: " + " together with ".join(shown[name] for name in cause))
    exonerated = [name for name, standing in found.singles if standing is Standing.INNOCENT]
    if exonerated:
        lines.append("exonerated: " + ", ".join(shown[name] for name in exonerated))
    lines.append(f"took {cost_line(cost)}")
    lines += [f"  {note}" for note in notes]
    lines += [f"CONTRADICTION: {text}" for text in found.contradictions]
    lines.append("each change alone:")
    lines += [f"  {shown[name]}: {standing.value}" for name, standing in found.singles]
    if found.pairs:
        lines.append("each pair:")
        lines += [f"  {shown[a]} + {shown[b]}: {standing.value}" for a, b, standing in found.pairs]
    lines.append("tried:")
    words = {True: "right", False: "fails", None: "cannot say"}
    lines += [f"  {words[ok]}: {', '.join(shown[name] for name in names) or 'no change'}" for names, ok in found.runs]
    return "\n".join(lines) + "\n"
