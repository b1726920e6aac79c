"""Which engine releases a stated version may be: a release, a month, a nightly, an image tag or a loose text."""

from __future__ import annotations

import re
from functools import cache

from packaging.version import InvalidVersion, Version

from planner._record import record
from planner.data.engine.store import read_release_dates

__all__ = ["UNSTATED", "VersionSpan", "span_of"]

# Patterns stay text until a version is stated: compiling them costs more than most reviews need.
_RELEASE = r"(?i)(?<![\d.])v?(0\.\d+\.\d+(?:\.?post\d+|rc\d+)?)(?![\d.]*\d)"
_NEGATED = (
    r"(?i)\b(?:not|before|fixed in|flashinfer)\s+v?0\.\d+\.\d+(?:\.?post\d+)?"
    r"|v?0\.\d+\.\d+(?:\.?post\d+)?\s+(?:works|ok|is fine)"
    r"|(?<!\d)0\.0\.0\S*"
)
_DAY = r"(?<!\d)(20\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)"
_MONTH = r"(?<!\d)(20\d\d)-(0[1-9]|1[0-2])(?![\d-])"
_NAMED = r"(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(20\d\d)\b"
_YEAR = r"(?<![\d.])(20\d\d)(?!\d)"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@record()
class VersionSpan:
    """Releases that a statement may mean, oldest first; empty when nothing was stated."""

    asked: str | None
    releases: tuple[str, ...]

    @property
    def stated(self) -> bool:
        """Whether any release can be named at all."""
        return bool(self.releases)

    def within(self, specifier: str) -> bool | None:
        """True when every release of the span is in ``specifier``, False when none is, None when that is open."""
        if not specifier:
            return True
        if not self.releases:
            return None
        allowed = _contained(specifier)
        inside = [release in allowed for release in self.releases]
        if all(inside):
            return True
        return None if any(inside) else False

    @property
    def nearest(self) -> str | None:
        """The release that stands for the span when the engine's picture needs one: the newest of it."""
        return self.releases[-1] if self.releases else None

    def __str__(self) -> str:
        if not self.releases:
            return "unstated"
        if len(self.releases) == 1:
            return self.releases[0]
        return f"{self.releases[0]} to {self.releases[-1]}"


UNSTATED = VersionSpan(asked=None, releases=())


@cache
def _ordered() -> tuple[tuple[str, str], ...]:
    dates = {name: day for name, day in read_release_dates().items() if "rc" not in name}
    return tuple(sorted(dates.items(), key=lambda item: Version(item[0])))


@cache
def _contained(specifier: str) -> frozenset[str]:
    from packaging.specifiers import SpecifierSet

    parsed = SpecifierSet(specifier)
    names = {name for name, _ in _ordered()} | _extra
    return frozenset(name for name in names if parsed.contains(name, prereleases=True))


_extra: set[str] = set()


@cache
def span_of(text: str | None) -> VersionSpan:
    """Span for what a user, an image tag or a report says. Text that names no version or date gives an empty span."""
    if text is None or not text.strip():
        return UNSTATED
    asked = text.strip()
    bare = re.sub(_NEGATED, " ", asked)
    named = [_canonical(found) for found in re.findall(_RELEASE, bare)]
    if len(named) >= 2 and re.search(r"\d\s*(?:-|to|\.\.)\s*v?0\.", bare):
        low, high = Version(named[0]), Version(named[1])
        return VersionSpan(asked, tuple(name for name, _ in _ordered() if low <= Version(name) <= high))
    if named and (re.search(r"era|class", bare) is None):
        chosen = tuple(dict.fromkeys(named))
        for name in chosen:
            if name not in dict(_ordered()):
                _extra.add(name)
                _contained.cache_clear()
        return VersionSpan(asked, tuple(sorted(chosen, key=Version)))
    if named:
        base = Version(named[0])
        family = tuple(name for name, _ in _ordered() if Version(name).release == base.release)
        return VersionSpan(asked, family or (named[0],))
    if (day := re.search(_DAY, bare)) is not None:
        stamp = "-".join(day.groups())
        return VersionSpan(asked, _between(stamp, stamp))
    if (month := re.search(_MONTH, bare)) is not None:
        return VersionSpan(asked, _between(f"{month[1]}-{month[2]}-01", f"{month[1]}-{month[2]}-31"))
    if (spoken := re.search(_NAMED, bare)) is not None:
        number = _MONTHS.index(spoken[1].lower()[:3]) + 1
        return VersionSpan(asked, _between(f"{spoken[2]}-{number:02d}-01", f"{spoken[2]}-{number:02d}-31"))
    if (year := re.search(_YEAR, bare)) is not None:
        first, last = ("04", "09") if "mid" in bare else ("01", "12")
        return VersionSpan(asked, _between(f"{year[1]}-{first}-01", f"{year[1]}-{last}-31"))
    return VersionSpan(asked, ())


def _canonical(text: str) -> str:
    try:
        return str(Version(text.lower()))
    except InvalidVersion:
        return text


def _between(first: str, last: str) -> tuple[str, ...]:
    """Releases that a build of these days may carry: those inside, the newest before, and the next after (whose changes
    a development build may already have)."""
    ordered = _ordered()
    before = [name for name, day in ordered if day < first][-1:]
    inside = [name for name, day in ordered if first <= day <= last]
    after = [name for name, day in ordered if day > last][:1]
    return (*before, *inside, *after)
