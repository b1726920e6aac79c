"""Rules and limits over contexts: findings with level and place, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.domain import Finding, Fix, Level, Limit
from planner.review.limits import limit_findings
from planner.rules.base import Hit, Place, Rule, level_of
from planner.rules.context import RuleContext
from planner.rules.index import rules_for

__all__ = ["in_order", "judge"]

_RANK = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}
_WORST = ("crash", "oom", "wrong_output", "hang", "silent", "slow")
_ALONE = "ENG001"
"""The engine's own refusal: silent where a rule already says what is wrong with the launch."""


def judge(
    contexts: Sequence[RuleContext],
    starts: Sequence[Place],
    *,
    file: str,
    limits: Sequence[Limit],
    first: bool = True,
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings of all launches of a file, and the limits that could not be judged.

    Args:
        contexts: one for each launch.
        starts: where each launch begins; a finding without a place of its own stands there.
        first: whether the first of them is the file's first launch, at which rules over the whole file run.
    """
    found: list[Finding] = []
    skipped: list[str] = []
    for index, (context, start) in enumerate(zip(contexts, starts, strict=True)):
        mine: list[Finding] = []
        for rule in rules_for(context):
            if rule.per_file and (index or not first):
                continue
            if rule.code == _ALONE and any(finding.level is Level.ERROR for finding in mine):
                continue
            mine.extend(_findings(rule, context, start, file))
        limited, unknown = limit_findings(context, limits, start=start, file=file)
        found.extend(mine)
        found.extend(limited)
        skipped.extend(unknown)
    return in_order(found), tuple(dict.fromkeys(skipped))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, worst first, then by place."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        kept.setdefault((finding.file, finding.line, finding.column, finding.code, finding.message), finding)
    return tuple(
        sorted(
            kept.values(),
            key=lambda one: (
                _RANK[one.level],
                _WORST.index(one.consequence.value),
                one.file or "",
                one.line or 0,
                one.column or 0,
                one.code,
            ),
        )
    )


def _findings(rule: Rule, context: RuleContext, start: Place, file: str) -> Iterable[Finding]:
    within = context.within(rule.versions)
    if within is False:
        return
    for hit in rule.check(context):
        place = hit.place or _place(context, hit) or start
        yield Finding(
            code=rule.code,
            slug=rule.slug,
            level=level_of(rule, hit, version_known=within is True),
            consequence=hit.consequence or rule.consequence,
            message=hit.message if within else f"{hit.message} (engine {rule.versions})",
            why=hit.why or rule.sections().get("Why", ""),
            fields=hit.fields,
            file=file,
            line=place.line,
            column=place.column,
            fix=_fix(rule, hit),
            sources=(*rule.sources, *hit.sources),
        )


def _place(context: RuleContext, hit: Hit) -> Place | None:
    return next((place for name in hit.fields if (place := context.place_of(name)) is not None), None)


def _fix(rule: Rule, hit: Hit) -> Fix | None:
    note = hit.fix_note or rule.sections().get("Fix") or None
    if not hit.edits and note is None:
        return None
    return Fix(edits=hit.edits, safe=hit.safe and bool(hit.edits), note=note)
