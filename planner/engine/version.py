"""Engine versions: a release, an image tag or a month becomes the flag table and the rule set that stand for it."""

from __future__ import annotations

import re
from functools import cache

from planner.data.engine.store import flag_table_names, read_release_dates
from planner.domain import Value
from planner.errors import InputError, nearest_hint

__all__ = ["NEWEST_RULES", "RULE_SETS", "EngineVersion", "parse_engine_version"]

RULE_SETS = ("0.5.12.post1", "0.5.23")
"""Versions whose resolution is written out and compared with the real engine, oldest first."""
NEWEST_RULES = RULE_SETS[-1]

_MONTH = re.compile(r"^(20\d\d)-(0[1-9]|1[0-2])$")
_DAY_IN_TAG = re.compile(r"(?<!\d)(20\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)")
_RELEASE = re.compile(r"^v?(\d+\.\d+(?:\.\d+)?(?:\.?(?:post|rc)\d+)?)(?=$|[-_+])", re.IGNORECASE)
_MOVING = {"latest", "dev", "main", "nightly", "newest"}


class EngineVersion(Value):
    """What a stated version means here. Versions compare by :meth:`at_least`."""

    asked: str | None
    """As written by the user; None when nothing was stated."""
    release: str | None
    """The release it is taken for; None for a build between releases or when unstated."""
    table: str
    """Version whose flag table stands for it."""
    stands_for: str
    """Release whose behaviour it is taken to have beyond table and rules: the newest known when unstated."""
    rules: str
    """Version whose resolution rules stand for it (one of :data:`RULE_SETS`)."""
    exact: bool
    """True when release, table and rules are one: findings that depend on the version need not soften."""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.release or self.asked or f"unstated (as {self.table})"

    @property
    def known(self) -> bool:
        """Whether the launch states a version at all."""
        return self.asked is not None

    def at_least(self, release: str) -> bool:
        """Whether this version is ``release`` or later (by its table when it is no release)."""
        from packaging.version import Version

        return Version(self.release or self.table) >= Version(release)


@cache
def parse_engine_version(text: str | None) -> EngineVersion:
    """Version for a release (``0.5.12.post1``, ``v0.5.16``), an image or its tag (``lmsysorg/sglang:v0.5.16-cu130``,
    ``nightly-dev-20260528-1a2b3c4d``) or a month (``2026-05``). None: the newest table, marked as unstated.

    Raises:
        InputError: the text is none of these.
    """
    if text is None or not text.strip():
        return _at(None, None, ("no engine version stated; the newest known one is assumed",))
    asked = text.strip()
    tag = _tag_of(asked)
    month = _MONTH.match(tag)
    if month:
        return _by_day(asked, f"{tag}-31", "published by the end of that month")
    release = _RELEASE.match(tag)
    if release:
        return _by_release(asked, release.group(1).lower())
    day = _DAY_IN_TAG.search(tag)
    if day:
        stamp = "-".join(day.groups())
        return _by_day(asked, stamp, f"published by {stamp}; a build in between may differ", between=True)
    if re.split(r"[-_]", tag.lower())[0] in _MOVING:
        return _at(asked, None, (f"{asked!r} moves; the newest known version is assumed",))
    raise InputError(
        f"unknown engine version {asked!r}",
        f"give a release, an image tag or a month (YYYY-MM); {nearest_hint(asked, _releases()[-24:])}",
    )


def _tag_of(text: str) -> str:
    """Tag of an image reference, else the text itself; a digest says nothing."""
    text = text.split("@", 1)[0]
    last = text.rsplit("/", 1)[-1]
    return last.split(":", 1)[1] if ":" in last else re.sub(r"^sglang(==|-)", "", last)


@cache
def _releases() -> list[str]:
    from packaging.version import Version

    return sorted(read_release_dates(), key=Version)


def _by_day(asked: str, day: str, why: str, *, between: bool = False) -> EngineVersion:
    dates = read_release_dates()
    earlier = [name for name in _releases() if dates[name] <= day and "rc" not in name]
    if not earlier:
        raise InputError(f"no SGLang release is known before {day[:7]}", f"the first known is of {min(dates.values())}")
    chosen = earlier[-1]
    note = f"{asked}: taken as {chosen}, the newest release {why}"
    return _at(asked, None if between else chosen, (note,), resolve_as=chosen, inexact=True)


def _by_release(asked: str, release: str) -> EngineVersion:
    from packaging.version import Version

    version = Version(release)
    names = _releases()
    name = next((known for known in names if Version(known) == version), None)
    newest = Version(names[-1])
    if name is None and (version.major != newest.major or not 4 <= version.minor <= newest.minor + 1):
        raise InputError(f"unknown engine version {asked!r}", nearest_hint(release, names[-24:]))
    notes = () if name is not None else (f"{release} is no release that is known here",)
    return _at(asked, name or str(version), notes, resolve_as=name or str(version))


def _at(
    asked: str | None,
    release: str | None,
    notes: tuple[str, ...],
    *,
    resolve_as: str | None = None,
    inexact: bool = False,
) -> EngineVersion:
    from packaging.version import Version

    tables = sorted(flag_table_names(), key=Version)
    wanted = Version(resolve_as or tables[-1])
    table = _nearest_older(wanted, tables)
    rules = _nearest_older(wanted, list(RULE_SETS))
    said = list(notes)
    if resolve_as is not None:
        if Version(table) > wanted:
            said.append(f"{resolve_as} is older than every flag table here; the oldest ({table}) stands for it")
        elif Version(table) != wanted:
            said.append(f"no flag table for {resolve_as}; the nearer older one ({table}) stands for it")
        if Version(rules) > wanted:
            said.append(f"resolution follows the rules of {rules}, the oldest known")
        elif Version(rules) != wanted:
            said.append(f"resolution follows the rules of {rules}; {resolve_as} may differ")
    exact = release is not None and not inexact and Version(table) == wanted and Version(rules) == wanted
    return EngineVersion(
        asked=asked,
        release=release,
        table=table,
        stands_for=str(wanted),
        rules=rules,
        exact=exact,
        notes=tuple(said),
    )


def _nearest_older(wanted: object, names: list[str]) -> str:
    from packaging.version import Version

    older = [name for name in names if Version(name) <= wanted]  # type: ignore[operator]
    return older[-1] if older else names[0]
