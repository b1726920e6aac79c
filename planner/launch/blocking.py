"""Refuses a launch that a review would refuse."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from planner.domain import Level
from planner.errors import InputError, Problem
from planner.launch.target import Target

__all__ = ["refuse_blocking"]


def refuse_blocking(
    target: Target, *, hardware: str | None = None, allowed: Sequence[str] = (), engine_version: str | None = None
) -> list[str]:
    """Reviews the argv as `plan-config check` does. Returns notes.

    Args:
        allowed: codes or limit ids that the user or the plan sets aside with a reason.

    Raises:
        InputError: findings of level error; all of them.
    """
    if importlib.util.find_spec("planner.review") is None:
        return ["the launch was not reviewed: this installation has no review"]
    from planner.data import load_limits, packaged_ids
    from planner.review.checking import check_words
    from planner.review.subject import load_subject

    versions = target.versions
    notes = []
    if hardware is not None and hardware not in packaged_ids("hardware"):
        notes.append(f"{hardware!r} is no hardware profile: rules about machines were not judged")
        hardware = None
    subject = load_subject(
        hw=hardware or (versions.hardware if versions else None),
        model=versions.model if versions else None,
        engine_version=engine_version or (versions.engine_version if versions else None),
        dialect=versions.dialect if versions else None,
    )
    report = check_words(target.argv, subject=subject, limits=load_limits(()))
    errors = [one for one in report.findings if one.level is Level.ERROR and one.code not in allowed]
    if errors:
        raise InputError(
            [
                Problem(one.message, field=one.code, hint="correct it, or say why it is safe: --allow CODE=REASON")
                for one in errors
            ]
        )
    waved = [one.code for one in report.findings if one.level is Level.ERROR]
    return notes + [f"set aside: {code}" for code in sorted(set(waved))]
