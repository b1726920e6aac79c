"""Chooses the cause among the candidates: root causes before wrappers, wrappers before symptoms, victims never."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.diagnose.catalogue import Role, causes
from planner.diagnose.events import Run
from planner.diagnose.facts import FactReader
from planner.diagnose.model import LogLine, Phase, SecondaryCause
from planner.diagnose.resolve import Candidate, candidates, speculates

__all__ = ["Verdict", "judge"]

SURVIVED_LINES = 50
"""Decode, prefill or 200 lines after a failure, with no fatal line since, that show that the server went on."""
BEFORE_FATAL_LINES = 40
"""A GPU assertion or a kernel's message is printed up to this many lines before the scheduler's exception."""
ACCEPT_NONE = 1.05
"""Median accept length at full batch at or under which no draft is accepted (the canary's bound)."""
MANY_RETRACTIONS = 10

_VICTIMS = frozenset({"collective-timeout", "hang-watchdog"})
"""Causes that any earlier failure of another rank brings about."""
_SYMPTOM_ORDER = ("nan-probabilities", "garbage-output", "accept-len-1", "throttled-max-running", "kv-pool-too-small")


@dataclass(slots=True)
class Verdict:
    """The cause of one run, with its evidence."""

    slug: str
    confidence: float
    lines: list[LogLine] = field(default_factory=list)
    phase: Phase = Phase.START
    secondary: list[SecondaryCause] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chosen: Candidate | None = None


def judge(run: Run, facts: FactReader) -> Verdict:
    """The verdict on a run."""
    found = candidates(run, facts)
    live = [c for c in found if c.role in (Role.ROOT, Role.GENERIC) and not _survived(c, run)]
    recovered = [c for c in found if c.role in (Role.ROOT, Role.GENERIC) and _survived(c, run)]
    if run.last_fatal_line is None and run.exception is None:
        live = [c for c in live if c.role is Role.ROOT or not c.soft]
    symptoms = _symptoms(found, run, facts)
    hangs = _rendezvous(run)
    chosen = _choose(live, run)
    if hangs is not None and (chosen is None or chosen.slug in ("hang-watchdog", "collective-timeout", "nccl-error")):
        verdict = hangs
    elif chosen is not None:
        verdict = _failure(chosen, live, run)
    elif symptoms and symptoms[0].slug == "nan-probabilities" and run.exception is None:
        verdict = symptoms[0]
    elif run.last_fatal_line is not None or _stands(run.exception, run):
        verdict = _unnamed(run)
    elif symptoms:
        verdict = symptoms[0]
    else:
        verdict = _healthy_or_unknown(run, facts)
    _add_secondary(verdict, live, recovered, symptoms, found)
    return verdict


def _survived(candidate: Candidate, run: Run) -> bool:
    if candidate.hit.count > 1 and run.last_fatal_line is not None:
        return False
    if run.last_fatal_line is not None and run.last_fatal_line >= candidate.line - BEFORE_FATAL_LINES:
        return False
    if run.ready_line is not None and run.ready_line > candidate.hit.last:
        return True
    return run.n_served - candidate.hit.served_before >= SURVIVED_LINES


def _choose(live: list[Candidate], run: Run) -> Candidate | None:
    hard = [c for c in live if c.role is Role.ROOT and not c.soft]
    generic = [c for c in live if c.role is Role.GENERIC]
    if run.fatal_lines and len(hard) > 1:
        last = max(c.line for c in hard)
        first_fatal = next((line for line in run.fatal_lines if last >= line - BEFORE_FATAL_LINES), None)
        if first_fatal is not None:
            hard = [c for c in hard if c.line >= first_fatal - BEFORE_FATAL_LINES]
    weaker = [*generic, *(c for c in live if c.role is Role.ROOT and c.soft)]
    if hard and all(c.slug in _VICTIMS for c in hard) and any(c.line < hard[0].line for c in weaker):
        hard = []
        live = [c for c in live if c.slug not in _VICTIMS]
    for group in (hard, [c for c in live if c.role is Role.ROOT], generic):
        left = _unexplained(group)
        if left:
            first = left[0].line
            return max((c for c in left if c.line == first), key=lambda c: c.strength)
    return None


def _unexplained(group: list[Candidate]) -> list[Candidate]:
    catalogue = causes()
    present = {c.slug for c in group}
    explained = {
        slug
        for slug in present
        for other in present - {slug}
        if slug in catalogue[other].explains and other not in catalogue[slug].explains
    }
    return [c for c in group if c.slug not in explained] or group


def _failure(chosen: Candidate, live: list[Candidate], run: Run) -> Verdict:
    same = [c for c in live if c.slug == chosen.slug]
    confidence = max(c.strength for c in same)
    confidence += 0.02 * min(2, len({c.hit.signature.id for c in same}) - 1)
    explains = causes()[chosen.slug].explains
    hard = {c.slug for c in live if c.role is Role.ROOT and not c.soft}
    rivals = hard - explains - _VICTIMS - {chosen.slug}
    confidence -= 0.12 if rivals else 0.0
    lines = list({c.hit.line.number: c.hit.line for c in same}.values())[:3]
    if run.fatal_line is not None and run.fatal_line.number not in {line.number for line in lines}:
        lines.append(run.fatal_line)
    phase = Phase.CAPTURE if chosen.hit.in_capture else chosen.hit.phase
    return Verdict(chosen.slug, _bounded(confidence), sorted(lines, key=lambda x: x.number), phase, chosen=chosen)


def _rendezvous(run: Run) -> Verdict | None:
    """Stack lines that name a rendezvous and the workspace of the fused all-reduce, in a run that did not get ready."""
    if "rendezvous" not in run.traits or "arfusion" not in run.traits or run.ready_line is not None:
        return None
    line = LogLine(
        number=run.traits["rendezvous"], text="stack: symmetric-memory rendezvous of the all-reduce workspace"
    )
    return Verdict("hang-arfusion-rendezvous", 0.88, [line], run.phase)


def _stands(exception: LogLine | None, run: Run) -> bool:
    """Whether an exception that no signature knows ended the run."""
    if exception is None:
        return False
    return run.phase.rank < Phase.READY.rank or run.last_fatal_line is not None


def _unnamed(run: Run) -> Verdict:
    lines = [line for line in (run.exception, run.fatal_line) if line is not None]
    in_capture = run.exception_in_capture if run.exception is not None else run.in_capture
    phase = run.exception_phase if run.exception is not None else run.phase
    note = (
        "an exception ended the run that no signature knows"
        if run.exception is not None
        else ("a process of the server died and its own message is not in this log; look at the other ranks")
    )
    slug, confidence = ("capture-failed-unknown", 0.55) if in_capture else ("unknown", 0.3)
    return Verdict(slug, confidence, sorted(lines, key=lambda x: x.number), phase, notes=[note])


def _symptoms(found: list[Candidate], run: Run, facts: FactReader) -> list[Verdict]:
    """Verdicts on a server that runs, worst first."""
    verdicts: dict[str, Verdict] = {}
    for candidate in found:
        if candidate.role is not Role.SYMPTOM:
            continue
        if candidate.hit.signature.id == "kv-retract" and not _many_retractions(run, facts):
            continue
        if candidate.slug == "accept-len-1" and (facts.full_batch()[0] or 0.0) > ACCEPT_NONE:
            continue
        known = verdicts.setdefault(
            candidate.slug, Verdict(candidate.slug, candidate.strength, [], candidate.hit.phase, chosen=candidate)
        )
        if len(known.lines) < 3:
            known.lines.append(candidate.hit.line)
    if run.degenerate is not None:
        verdicts["garbage-output"] = Verdict("garbage-output", 0.9, [run.degenerate], run.phase)
    accept, n_full, _ = facts.full_batch()
    if accept is not None and accept <= ACCEPT_NONE and speculates(run, facts) is not False:
        lines = [_decode_line(facts)] if facts.points else []
        verdicts["accept-len-1"] = Verdict("accept-len-1", min(0.95, 0.7 + 0.05 * n_full), lines, run.phase)
    throttled = _throttled(run, facts)
    if throttled is not None and "throttled-max-running" not in verdicts:
        verdicts["throttled-max-running"] = throttled
    return [verdicts[slug] for slug in _SYMPTOM_ORDER if slug in verdicts]


def _many_retractions(run: Run, facts: FactReader) -> bool:
    n_retractions = run.counts.get("kv-retract", 0)
    return n_retractions > MANY_RETRACTIONS or (facts.n_decode < 10 * n_retractions)


def _decode_line(facts: FactReader) -> LogLine:
    top = max(point.running_req for point in facts.points)
    point = next(p for p in reversed(facts.points) if p.running_req >= 0.9 * top)
    text = f"accept len {point.accept_len} at {point.running_req} running requests (full batch)"
    return LogLine(number=point.line, text=text)


def _throttled(run: Run, facts: FactReader) -> Verdict | None:
    """Asked for more running requests than the capacity line grants, counted per attention-DP worker."""
    asked, effective = facts.asked_running, facts.capacity.get("max_running_requests")
    if asked is None or effective is None or effective <= 0:
        return None
    workers = facts.args.get("dp_size")
    n_workers = workers if isinstance(workers, int) and workers > 0 and facts.args.get("enable_dp_attention") else 1
    if effective >= asked // n_workers:
        return None
    text = f"max_running_requests: asked {asked} over {n_workers} worker(s), effective {effective} per worker"
    return Verdict("throttled-max-running", 0.85, [LogLine(number=run.first_line, text=text)], run.phase)


def _healthy_or_unknown(run: Run, facts: FactReader) -> Verdict:
    if run.phase.rank >= Phase.READY.rank and run.phase is not Phase.STOPPED:
        notes = ["the server was stopped from outside"] if run.stopping_line is not None else []
        return Verdict(
            "healthy", 0.9 if run.ready_line is not None else 0.75, _ready_lines(run), run.phase, notes=notes
        )
    if run.n_served >= 3 or (run.phase is Phase.LISTENING and facts.engine != "sglang"):
        return Verdict("healthy", 0.6, [], run.phase)
    note = f"the log ends in phase {run.phase.value}: still starting, hung, or cut off"
    return Verdict("unknown", 0.2, [], run.phase, notes=[note])


def _ready_lines(run: Run) -> list[LogLine]:
    if run.ready_line is None:
        return []
    return [LogLine(number=run.ready_line, text="the server reported ready")]


def _add_secondary(
    verdict: Verdict,
    live: list[Candidate],
    recovered: list[Candidate],
    symptoms: list[Verdict],
    found: list[Candidate],
) -> None:
    seen = {verdict.slug}
    explains = causes()[verdict.slug].explains
    groups = (
        [
            (c.slug, c.hit.line, "consequence" if c.slug in explains or c.role is Role.GENERIC else "other")
            for c in live
        ],
        [(s.slug, s.lines[0], "symptom") for s in symptoms if s.lines],
        [(c.slug, c.hit.line, "recovered") for c in recovered],
        [(c.slug, c.hit.line, "consequence") for c in found if c.role is Role.CONSEQUENCE and c.slug != "unknown"],
    )
    for group in groups:
        for slug, line, role in group:
            if slug not in seen and len(verdict.secondary) < 8:
                seen.add(slug)
                verdict.secondary.append(SecondaryCause(slug=slug, line=line, role=role))
    if verdict.slug == "healthy" and recovered:
        verdict.notes.append("a failure is in the log that the server survived; see secondary causes")


def _bounded(confidence: float) -> float:
    return round(min(0.99, max(0.05, confidence)), 3)
